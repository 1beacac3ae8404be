package dat

import "fmt"

// enumName is the name of a value of an enumeration; of one without a name its kind and number.
func enumName[E ~uint8 | ~uint16 | ~uint32](name, kind string, value E) string {
	if name != "" {
		return name
	}
	return fmt.Sprintf("%s(%#x)", kind, uint64(value))
}
