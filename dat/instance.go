package dat

import (
	"strconv"
	"strings"
	"time"

	"github.com/datxdp/datxdp/wire"
)

// minSilence is the shortest silence of a peer that can be asked for by name: less breaks connections
// whenever a host is busy.
const minSilence = 100 * time.Millisecond

// take moves the options that follow the name of a device, as in "xdp:eth0 port=4000 queues=2 silence=30s",
// to o, and returns the name.
func (o *Options) take(instance string) (string, error) {
	words := strings.Fields(instance)
	if len(words) == 0 {
		return "", nil
	}
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		if key == "silence" {
			d, err := time.ParseDuration(value)
			if err != nil || d < minSilence || d > wire.MaxGiveUp {
				return "", fail(ErrInvalidParameter, "opening %s: %q is not a time from %v to %v, as in silence=30s",
					words[0], w, minSilence, wire.MaxGiveUp)
			}
			o.Limits.GiveUp = d
			continue
		}
		n, err := strconv.ParseUint(value, 10, 16)
		switch {
		case key != "port" && key != "peerport" && key != "queues":
			return "", fail(ErrInvalidParameter, "opening %s: there is no option %q; use port=N, peerport=N, queues=N, silence=TIME", words[0], w)
		case err != nil || n == 0:
			return "", fail(ErrInvalidParameter, "opening %s: %q is not a number from 1 to 65535", words[0], w)
		case key == "port":
			o.Port = uint16(n)
		case key == "peerport":
			o.PeerPort = uint16(n)
		default:
			o.Queues = int(n)
		}
	}
	return words[0], nil
}
