package dat

import (
	"time"

	"github.com/datxdp/datxdp/wire"
)

// reloadPeriod is how often an adapter looks whether its files have changed, and whether the time of a peer is over. A
// look takes two system calls.
const reloadPeriod = 2 * time.Second

// ReloadSecurity reads the files of keys and peers again. An adapter in secure mode does so by itself some seconds after
// they have changed, for all its opens; ReloadSecurity does not wait.
//
// Connections keep their keys. But a connection ends if the new file of peers does not permit it: if it does not have the
// key of the peer, or the peer may not connect from its address or to its service any more, or its time is over. Both
// sides then get EventBroken with BreakDenied. Connection requests that wait are dropped for the same reasons. The word
// memory= counts for open connections from now on, and the limits for new ones.
//
// After an error, all is as before. Errors: ErrInvalidParameter (a file is wrong), ErrPrivilegesViolation (a file cannot
// be read), ErrInvalidState (the adapter is in plaintext mode), ErrInvalidHandle.
func (ia *IA) ReloadSecurity() error {
	if err := ia.lock(); err != nil {
		return err
	}
	a := ia.a
	ia.mu.Unlock()
	if a.security == nil {
		return fail(ErrInvalidState, "the adapter is in plaintext mode: there is nothing to read again")
	}
	return a.reloadSecurity()
}

// reloadSecurity reads the files again, and ends what they do not permit any more.
func (a *adapter) reloadSecurity() error {
	s := a.security
	s.reloading.Lock()
	defer s.reloading.Unlock()
	gone, err := s.store.Reload()
	if err != nil {
		return filesError(err)
	}
	set := s.store.Current()
	attrs := []any{"keys", len(set.Keys.Public()), "peers", len(set.Policy.Peers()), "removed", len(gone)}
	if len(gone) > 0 {
		attrs = append(attrs, "first", gone[0].String())
	}
	s.log.Info("dat: keys and peers read again", attrs...)
	a.checkGrants()
	return nil
}

// checkGrants ends the connections and requests that the policy does not permit any more.
func (a *adapter) checkGrants() {
	for _, d := range a.drivers {
		_ = d.runPolled(func(e *wire.Engine) error { // fails on a closed adapter, which has no connections
			e.CheckGrants()
			return nil
		})
	}
}

// watchSecurity reads the files again when they have changed, and ends the connections of peers whose time is over. It
// returns when the adapter stops it.
func (a *adapter) watchSecurity() {
	s := a.security
	defer close(s.watched)
	ticker := time.NewTicker(reloadPeriod)
	defer ticker.Stop()
	files, failed, last := s.store.Watch(), "", time.Now()
	for {
		var now time.Time
		select {
		case <-s.ended:
			return
		case now = <-ticker.C:
		}
		if files.Changed() {
			switch err := a.reloadSecurity(); {
			case err == nil:
				failed = ""
			case err.Error() != failed:
				failed = err.Error()
				s.warn.Warn("dat: the new files of keys and peers are not used; the ones before count", "error", err)
			}
		}
		if expiry := s.store.Current().Policy.NextExpiry(last); !expiry.IsZero() && !now.Before(expiry) {
			a.checkGrants()
		}
		last = now
	}
}
