package places

import (
	"context"
	"fmt"
	"os"

	"github.com/datxdp/datxdp/dat"
)

// Serve listens at a service and prints the address of the server. Then it calls handle for each event of the dispatcher
// evd until ctx is done, or until the adapter has ended: then it returns the adapter's error. If handle returns an error, Serve prints it and continues, because an error of one client does
// not affect the other clients.
func Serve(ctx context.Context, ia *dat.IA, evd *dat.EVD, program string, service dat.ConnQual, handle func(*dat.Event) error) error {
	if _, err := ia.CreatePSP(service, evd, dat.PSPConsumer); err != nil {
		return err
	}
	about, err := ia.Query()
	if err != nil {
		return err
	}
	errs := Errors{Out: os.Stderr}
	fmt.Printf("serving on %v (%s)\n", about.Address, about.Mode)
	if about.Port != dat.DefaultPort { // another program has that port
		fmt.Printf("UDP port %[1]d: clients need peerport=%[1]d behind the name of their adapter\n", about.Port)
	}
	ctx, stop := WithAdapter(ctx, ia)
	defer stop()
	for ev, err := range evd.Events(ctx) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		if err := handle(ev); err != nil {
			errs.Print(fmt.Sprintf("%s: %v", program, err))
		}
	}
	return nil
}

// WithAdapter returns a context that is done when ctx is, and also when the adapter has ended. Its cause is the adapter's
// error then.
func WithAdapter(ctx context.Context, ia *dat.IA) (context.Context, context.CancelFunc) {
	ended := ia.Context()
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(ended, func() { cancel(context.Cause(ended)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
