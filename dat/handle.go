package dat

import "sync/atomic"

// HandleType is the kind of an object (DAT_HANDLE_TYPE).
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

// Handle has the methods that all objects share (DAT_HANDLE). Each method returns ErrInvalidHandle if the object is nil
// or freed, or if its IA is closed. Any goroutine may call the methods.
type Handle interface {
	// HandleType returns the kind of the object (dat_get_handle_type).
	HandleType() (HandleType, error)
	// SetConsumerContext attaches the value v to the object, in place of an older value (dat_set_consumer_context). If
	// v is nil, no value is attached afterwards. The provider does not use the value.
	SetConsumerContext(v any) error
	// ConsumerContext returns the attached value, or nil if there is none (dat_get_consumer_context).
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

// consumer holds the consumer context of an object.
type consumer struct{ context atomic.Pointer[any] }

func (c *consumer) embeddedConsumer() *consumer { return c }

// The functions typeOf, setContext and contextOf implement the methods of Handle, once for all types of DAT objects.
// They know a DAT object as a datObject, which has two methods. checkLive may be called on a nil pointer,
// embeddedConsumer may not.
//
// Each type of DAT object declares the methods of Handle itself. It does not get them from the struct consumer, which
// it embeds, because a method that is promoted from an embedded struct panics on a nil pointer.
type datObject interface {
	checkLive() error
	embeddedConsumer() *consumer
}

func typeOf(o datObject, t HandleType) (HandleType, error) { return t, o.checkLive() }

func setContext(o datObject, v any) error {
	if err := o.checkLive(); err != nil {
		return err
	}
	o.embeddedConsumer().context.Store(&v)
	return nil
}

func contextOf(o datObject) (any, error) {
	if err := o.checkLive(); err != nil {
		return nil, err
	}
	if v := o.embeddedConsumer().context.Load(); v != nil {
		return *v, nil
	}
	return nil, nil
}

// HandleType returns HandleIA (dat_get_handle_type).
func (ia *IA) HandleType() (HandleType, error) { return typeOf(ia, HandleIA) }

// SetConsumerContext attaches a value of the caller (dat_set_consumer_context).
func (ia *IA) SetConsumerContext(v any) error { return setContext(ia, v) }

// ConsumerContext returns the attached value, or nil if there is none (dat_get_consumer_context).
func (ia *IA) ConsumerContext() (any, error) { return contextOf(ia) }

// HandleType returns HandleEP (dat_get_handle_type).
func (ep *EP) HandleType() (HandleType, error) { return typeOf(ep, HandleEP) }

// SetConsumerContext attaches a value of the caller (dat_set_consumer_context).
func (ep *EP) SetConsumerContext(v any) error { return setContext(ep, v) }

// ConsumerContext returns the attached value, or nil if there is none (dat_get_consumer_context).
func (ep *EP) ConsumerContext() (any, error) { return contextOf(ep) }

// HandleType returns HandleEVD (dat_get_handle_type).
func (e *EVD) HandleType() (HandleType, error) { return typeOf(e, HandleEVD) }

// SetConsumerContext attaches a value of the caller (dat_set_consumer_context).
func (e *EVD) SetConsumerContext(v any) error { return setContext(e, v) }

// ConsumerContext returns the attached value, or nil if there is none (dat_get_consumer_context).
func (e *EVD) ConsumerContext() (any, error) { return contextOf(e) }

// HandleType returns HandleCR (dat_get_handle_type).
func (c *CR) HandleType() (HandleType, error) { return typeOf(c, HandleCR) }

// SetConsumerContext attaches a value of the caller (dat_set_consumer_context).
func (c *CR) SetConsumerContext(v any) error { return setContext(c, v) }

// ConsumerContext returns the attached value, or nil if there is none (dat_get_consumer_context).
func (c *CR) ConsumerContext() (any, error) { return contextOf(c) }

// HandleType returns HandlePSP (dat_get_handle_type).
func (p *PSP) HandleType() (HandleType, error) { return typeOf(p, HandlePSP) }

// SetConsumerContext attaches a value of the caller (dat_set_consumer_context).
func (p *PSP) SetConsumerContext(v any) error { return setContext(p, v) }

// ConsumerContext returns the attached value, or nil if there is none (dat_get_consumer_context).
func (p *PSP) ConsumerContext() (any, error) { return contextOf(p) }

// HandleType returns HandlePZ (dat_get_handle_type).
func (p *PZ) HandleType() (HandleType, error) { return typeOf(p, HandlePZ) }

// SetConsumerContext attaches a value of the caller (dat_set_consumer_context).
func (p *PZ) SetConsumerContext(v any) error { return setContext(p, v) }

// ConsumerContext returns the attached value, or nil if there is none (dat_get_consumer_context).
func (p *PZ) ConsumerContext() (any, error) { return contextOf(p) }

// HandleType returns HandleLMR (dat_get_handle_type).
func (l *LMR) HandleType() (HandleType, error) { return typeOf(l, HandleLMR) }

// SetConsumerContext attaches a value of the caller (dat_set_consumer_context).
func (l *LMR) SetConsumerContext(v any) error { return setContext(l, v) }

// ConsumerContext returns the attached value, or nil if there is none (dat_get_consumer_context).
func (l *LMR) ConsumerContext() (any, error) { return contextOf(l) }

// HandleType returns HandleRMR (dat_get_handle_type).
func (r *RMR) HandleType() (HandleType, error) { return typeOf(r, HandleRMR) }

// SetConsumerContext attaches a value of the caller (dat_set_consumer_context).
func (r *RMR) SetConsumerContext(v any) error { return setContext(r, v) }

// ConsumerContext returns the attached value, or nil if there is none (dat_get_consumer_context).
func (r *RMR) ConsumerContext() (any, error) { return contextOf(r) }

// HandleType returns HandleRSP (dat_get_handle_type).
func (r *RSP) HandleType() (HandleType, error) { return typeOf(r, HandleRSP) }

// SetConsumerContext attaches a value of the caller (dat_set_consumer_context).
func (r *RSP) SetConsumerContext(v any) error { return setContext(r, v) }

// ConsumerContext returns the attached value, or nil if there is none (dat_get_consumer_context).
func (r *RSP) ConsumerContext() (any, error) { return contextOf(r) }

// HandleType returns HandleCNO (dat_get_handle_type).
func (c *CNO) HandleType() (HandleType, error) { return typeOf(c, HandleCNO) }

// SetConsumerContext attaches a value of the caller (dat_set_consumer_context).
func (c *CNO) SetConsumerContext(v any) error { return setContext(c, v) }

// ConsumerContext returns the attached value, or nil if there is none (dat_get_consumer_context).
func (c *CNO) ConsumerContext() (any, error) { return contextOf(c) }

// HandleType returns HandleSRQ (dat_get_handle_type).
func (s *SRQ) HandleType() (HandleType, error) { return typeOf(s, HandleSRQ) }

// SetConsumerContext attaches a value of the caller (dat_set_consumer_context).
func (s *SRQ) SetConsumerContext(v any) error { return setContext(s, v) }

// ConsumerContext returns the attached value, or nil if there is none (dat_get_consumer_context).
func (s *SRQ) ConsumerContext() (any, error) { return contextOf(s) }

// live returns an error if the IA is nil or closed.
func (ia *IA) checkLive() error {
	if err := ia.lock(); err != nil {
		return err
	}
	ia.mu.Unlock()
	return nil
}

func (ep *EP) checkLive() error { return ep.usable() }
func (e *EVD) checkLive() error { return e.usable() }

func (c *CR) checkLive() error {
	_, err := c.Query()
	return err
}

func (p *PSP) checkLive() error {
	if p == nil || p.ended.Load() {
		return errHandlePSP
	}
	return nil
}

func (p *PZ) checkLive() error {
	_, err := p.Query()
	return err
}

func (l *LMR) checkLive() error {
	_, err := l.Query()
	return err
}

func (r *RMR) checkLive() error {
	_, err := r.Query()
	return err
}

func (r *RSP) checkLive() error {
	_, err := r.Query()
	return err
}

func (c *CNO) checkLive() error { return c.usable() }
func (s *SRQ) checkLive() error { return s.usable() }
