package ends

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/workload"
)

// await repeats the function try while its error says that another client has the server, for at most the duration
// wait. Before each pause it passes a message to the function note.
func await(ctx context.Context, wait time.Duration, note func(string), try func() error) error {
	for end := time.Now().Add(wait); ; {
		err := try()
		var taken *workload.TakenError
		if !errors.As(err, &taken) {
			return err
		}
		left := time.Until(end)
		if left <= 0 {
			return taken.Waited(wait)
		}
		note(fmt.Sprintf("waiting %s more: %v", left.Round(time.Second), taken))
		select {
		case <-time.After(min(waitEvery, left)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
