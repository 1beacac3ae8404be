package ends

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/workload"
)

// await calls the function attempt. While the returned error says that another client has the server, await repeats the
// call after a pause. The argument wait is the time after which it gives up. Before each pause it calls the function
// warn with a message.
func await(ctx context.Context, wait time.Duration, warn func(string), attempt func() error) error {
	for end := time.Now().Add(wait); ; {
		err := attempt()
		var taken *workload.TakenError
		if !errors.As(err, &taken) {
			return err
		}
		left := time.Until(end)
		if left <= 0 {
			return taken.Waited(wait)
		}
		warn(fmt.Sprintf("waiting %s more: %v", left.Round(time.Second), taken))
		select {
		case <-time.After(min(waitEvery, left)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
