package dat

import (
	"strconv"
	"strings"
)

// take moves the options that follow the name of a device, as in "xdp:eth0 port=4000 queues=2", to o, and
// returns the name.
func (o *Options) take(instance string) (string, error) {
	words := strings.Fields(instance)
	if len(words) == 0 {
		return "", nil
	}
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		n, err := strconv.ParseUint(value, 10, 16)
		switch {
		case key != "port" && key != "queues":
			return "", fail(ErrInvalidParameter, "opening %s: there is no option %q; use port=N, queues=N", words[0], w)
		case err != nil || n == 0:
			return "", fail(ErrInvalidParameter, "opening %s: %q is not a number from 1 to 65535", words[0], w)
		case key == "port":
			o.Port = uint16(n)
		default:
			o.Queues = int(n)
		}
	}
	return words[0], nil
}
