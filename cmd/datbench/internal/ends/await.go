package ends

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/workload"
)

// retryWhileTaken calls attempt. While the returned error says that another client has the server, it repeats the call
// after a pause. It gives up after maxWait. Before each pause it passes a message to warn.
func retryWhileTaken(ctx context.Context, maxWait time.Duration, warn func(string), attempt func() error) error {
	for end := time.Now().Add(maxWait); ; {
		err := attempt()
		var taken *workload.TakenError
		if !errors.As(err, &taken) {
			return err
		}
		left := time.Until(end)
		if left <= 0 {
			return taken.Waited(maxWait)
		}
		warn(fmt.Sprintf("waiting %s more: %v", left.Round(time.Second), taken))
		select {
		case <-time.After(min(waitEvery, left)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
