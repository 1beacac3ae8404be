package dat

var (
	_ Handle = (*CNO)(nil)
	_ Handle = (*RMR)(nil)
	_ Handle = (*RSP)(nil)
	_ Handle = (*SRQ)(nil)
)

// HandleType is HandleCNO (dat_get_handle_type).
func (c *CNO) HandleType() (HandleType, error) { return typeOf(c, HandleCNO) }

// SetConsumerContext attaches a value of the caller (dat_set_consumer_context).
func (c *CNO) SetConsumerContext(v any) error { return setContext(c, v) }

// ConsumerContext is the value that was attached, nil if none (dat_get_consumer_context).
func (c *CNO) ConsumerContext() (any, error) { return contextOf(c) }

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

// HandleType is HandleSRQ (dat_get_handle_type).
func (s *SRQ) HandleType() (HandleType, error) { return typeOf(s, HandleSRQ) }

// SetConsumerContext attaches a value of the caller (dat_set_consumer_context).
func (s *SRQ) SetConsumerContext(v any) error { return setContext(s, v) }

// ConsumerContext is the value that was attached, nil if none (dat_get_consumer_context).
func (s *SRQ) ConsumerContext() (any, error) { return contextOf(s) }

func (c *CNO) live() error { return c.usable() }
func (r *RMR) live() error { return r.usable() }

func (s *SRQ) live() error {
	if err := s.lock(); err != nil {
		return err
	}
	s.ia.mu.Unlock()
	return nil
}

func (r *RSP) live() error {
	if err := r.lock(); err != nil {
		return err
	}
	r.unlock()
	return nil
}
