package dat

import "fmt"

// enumName returns name, or kind and the number of value if name is empty.
func enumName[E ~uint8 | ~uint16 | ~uint32](name, kind string, value E) string {
	if name != "" {
		return name
	}
	return fmt.Sprintf("%s(%#x)", kind, uint64(value))
}
