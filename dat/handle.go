package dat

import "sync/atomic"

// HandleType tells the kinds of objects apart (DAT_HANDLE_TYPE).
type HandleType uint8

// Kinds of objects; the values are those of uDAPL 2.0.
const (
	HandleCR  HandleType = 0
	HandleEP  HandleType = 1
	HandleEVD HandleType = 2
	HandleIA  HandleType = 3
	HandleLMR HandleType = 4
	HandlePSP HandleType = 5
	HandlePZ  HandleType = 6
	HandleRMR HandleType = 7
	HandleRSP HandleType = 8
	HandleCNO HandleType = 9
	HandleSRQ HandleType = 10
)

var handleNames = [...]string{"CR", "EP", "EVD", "IA", "LMR", "PSP", "PZ", "RMR", "RSP", "CNO", "SRQ"}

// String is the DAT name without its prefix.
func (t HandleType) String() string {
	name := ""
	if int(t) < len(handleNames) {
		name = handleNames[t]
	}
	return enumName(name, "DAT_HANDLE_TYPE", t)
}

// Handle is what every object has in common (DAT_HANDLE). On one that was freed, whose adapter was
// closed, or that is nil, each call returns ErrInvalidHandle. The calls may be made by any goroutine.
type Handle interface {
	// HandleType is the kind of object (dat_get_handle_type).
	HandleType() (HandleType, error)
	// SetConsumerContext attaches a value of the caller in place of the one before; nil takes it away
	// (dat_set_consumer_context). The provider only keeps it.
	SetConsumerContext(v any) error
	// ConsumerContext is the value that was attached, nil if none (dat_get_consumer_context).
	ConsumerContext() (any, error)
}

var (
	_ Handle = (*IA)(nil)
	_ Handle = (*EP)(nil)
	_ Handle = (*EVD)(nil)
	_ Handle = (*CR)(nil)
	_ Handle = (*PSP)(nil)
	_ Handle = (*PZ)(nil)
	_ Handle = (*LMR)(nil)
	_ Handle = (*RMR)(nil)
	_ Handle = (*RSP)(nil)
	_ Handle = (*CNO)(nil)
	_ Handle = (*SRQ)(nil)
)

// consumer is the part of an object that holds the consumer's context.
type consumer struct{ context atomic.Pointer[any] }

func (c *consumer) holder() *consumer { return c }

// object is what embeds consumer. live is legal on nil, holder is not: no call of Handle can be promoted
// from consumer, since a nil object has none.
type object interface {
	live() error
	holder() *consumer
}

func typeOf(o object, t HandleType) (HandleType, error) { return t, o.live() }

func setContext(o object, v any) error {
	if err := o.live(); err != nil {
		return err
	}
	o.holder().context.Store(&v)
	return nil
}

func contextOf(o object) (any, error) {
	if err := o.live(); err != nil {
		return nil, err
	}
	if v := o.holder().context.Load(); v != nil {
		return *v, nil
	}
	return nil, nil
}

// HandleType is HandleIA (dat_get_handle_type).
func (ia *IA) HandleType() (HandleType, error) { return typeOf(ia, HandleIA) }

// SetConsumerContext attaches a value of the caller (dat_set_consumer_context).
func (ia *IA) SetConsumerContext(v any) error { return setContext(ia, v) }

// ConsumerContext is the value that was attached, nil if none (dat_get_consumer_context).
func (ia *IA) ConsumerContext() (any, error) { return contextOf(ia) }

// HandleType is HandleEP (dat_get_handle_type).
func (ep *EP) HandleType() (HandleType, error) { return typeOf(ep, HandleEP) }

// SetConsumerContext attaches a value of the caller (dat_set_consumer_context).
func (ep *EP) SetConsumerContext(v any) error { return setContext(ep, v) }

// ConsumerContext is the value that was attached, nil if none (dat_get_consumer_context).
func (ep *EP) ConsumerContext() (any, error) { return contextOf(ep) }

// HandleType is HandleEVD (dat_get_handle_type).
func (e *EVD) HandleType() (HandleType, error) { return typeOf(e, HandleEVD) }

// SetConsumerContext attaches a value of the caller (dat_set_consumer_context).
func (e *EVD) SetConsumerContext(v any) error { return setContext(e, v) }

// ConsumerContext is the value that was attached, nil if none (dat_get_consumer_context).
func (e *EVD) ConsumerContext() (any, error) { return contextOf(e) }

// HandleType is HandleCR (dat_get_handle_type).
func (c *CR) HandleType() (HandleType, error) { return typeOf(c, HandleCR) }

// SetConsumerContext attaches a value of the caller (dat_set_consumer_context).
func (c *CR) SetConsumerContext(v any) error { return setContext(c, v) }

// ConsumerContext is the value that was attached, nil if none (dat_get_consumer_context).
func (c *CR) ConsumerContext() (any, error) { return contextOf(c) }

// HandleType is HandlePSP (dat_get_handle_type).
func (p *PSP) HandleType() (HandleType, error) { return typeOf(p, HandlePSP) }

// SetConsumerContext attaches a value of the caller (dat_set_consumer_context).
func (p *PSP) SetConsumerContext(v any) error { return setContext(p, v) }

// ConsumerContext is the value that was attached, nil if none (dat_get_consumer_context).
func (p *PSP) ConsumerContext() (any, error) { return contextOf(p) }

// HandleType is HandlePZ (dat_get_handle_type).
func (p *PZ) HandleType() (HandleType, error) { return typeOf(p, HandlePZ) }

// SetConsumerContext attaches a value of the caller (dat_set_consumer_context).
func (p *PZ) SetConsumerContext(v any) error { return setContext(p, v) }

// ConsumerContext is the value that was attached, nil if none (dat_get_consumer_context).
func (p *PZ) ConsumerContext() (any, error) { return contextOf(p) }

// HandleType is HandleLMR (dat_get_handle_type).
func (l *LMR) HandleType() (HandleType, error) { return typeOf(l, HandleLMR) }

// SetConsumerContext attaches a value of the caller (dat_set_consumer_context).
func (l *LMR) SetConsumerContext(v any) error { return setContext(l, v) }

// ConsumerContext is the value that was attached, nil if none (dat_get_consumer_context).
func (l *LMR) ConsumerContext() (any, error) { return contextOf(l) }

// HandleType is HandleRMR (dat_get_handle_type).
func (r *RMR) HandleType() (HandleType, error) { return typeOf(r, HandleRMR) }

// SetConsumerContext attaches a value of the caller (dat_set_consumer_context).
func (r *RMR) SetConsumerContext(v any) error { return setContext(r, v) }

// ConsumerContext is the value that was attached, nil if none (dat_get_consumer_context).
func (r *RMR) ConsumerContext() (any, error) { return contextOf(r) }

// HandleType is HandleRSP (dat_get_handle_type).
func (r *RSP) HandleType() (HandleType, error) { return typeOf(r, HandleRSP) }

// SetConsumerContext attaches a value of the caller (dat_set_consumer_context).
func (r *RSP) SetConsumerContext(v any) error { return setContext(r, v) }

// ConsumerContext is the value that was attached, nil if none (dat_get_consumer_context).
func (r *RSP) ConsumerContext() (any, error) { return contextOf(r) }

// HandleType is HandleCNO (dat_get_handle_type).
func (c *CNO) HandleType() (HandleType, error) { return typeOf(c, HandleCNO) }

// SetConsumerContext attaches a value of the caller (dat_set_consumer_context).
func (c *CNO) SetConsumerContext(v any) error { return setContext(c, v) }

// ConsumerContext is the value that was attached, nil if none (dat_get_consumer_context).
func (c *CNO) ConsumerContext() (any, error) { return contextOf(c) }

// HandleType is HandleSRQ (dat_get_handle_type).
func (s *SRQ) HandleType() (HandleType, error) { return typeOf(s, HandleSRQ) }

// SetConsumerContext attaches a value of the caller (dat_set_consumer_context).
func (s *SRQ) SetConsumerContext(v any) error { return setContext(s, v) }

// ConsumerContext is the value that was attached, nil if none (dat_get_consumer_context).
func (s *SRQ) ConsumerContext() (any, error) { return contextOf(s) }

// live is nil for an open adapter.
func (ia *IA) live() error {
	if err := ia.lock(); err != nil {
		return err
	}
	ia.mu.Unlock()
	return nil
}

func (ep *EP) live() error { return ep.usable() }
func (e *EVD) live() error { return e.usable() }

func (c *CR) live() error {
	_, err := c.Query()
	return err
}

func (p *PSP) live() error {
	if p == nil || p.over.Load() {
		return errHandlePSP
	}
	return nil
}

func (p *PZ) live() error {
	_, err := p.Query()
	return err
}

func (l *LMR) live() error {
	_, err := l.Query()
	return err
}

func (r *RMR) live() error {
	_, err := r.Query()
	return err
}

func (r *RSP) live() error {
	_, err := r.Query()
	return err
}

func (c *CNO) live() error { return c.usable() }
func (s *SRQ) live() error { return s.usable() }
