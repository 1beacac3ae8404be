package places

import (
	"context"
	"fmt"
	"iter"
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
	for ev, err := range Events(ctx, ia, evd) {
		if err != nil {
			return err
		}
		if err := handle(ev); err != nil {
			errs.Print(fmt.Sprintf("%s: %v", program, err))
		}
	}
	return nil
}

// Events is evd.Events until ctx is done or the adapter has ended. The last error is the adapter's error then.
func Events(ctx context.Context, ia *dat.IA, evd *dat.EVD) iter.Seq2[*dat.Event, error] {
	return func(yield func(*dat.Event, error) bool) {
		ended := ia.Context()
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(ended, func() { cancel(context.Cause(ended)) })()
		for ev, err := range evd.Events(ctx) {
			if err != nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}
