package handshake

import "io"

// Requester is the end that sends message 1.
type Requester struct{ state }

// Request begins a handshake. It appends message 1 with the payload to out. It reads KeySize bytes from random.
func Request(t *Terms, random io.Reader, out, payload []byte) (r *Requester, message []byte, err error) {
	r = &Requester{}
	if err := r.start(t, true, random); err != nil {
		return nil, nil, err
	}
	message, _, _, err = r.write(out, payload)
	if err != nil {
		return nil, nil, err
	}
	return r, message, nil
}

// Finish reads message 2. It appends its payload to out, and writes the secrets to s. If it fails with ErrLength or
// ErrAuth, the right message may still come, and Finish may be called again.
func (r *Requester) Finish(out, message []byte, s *Secrets) (payload []byte, err error) {
	if r.noise == nil {
		return nil, ErrState
	}
	if err := checkLength(len(message), r.form.ReplyHead()); err != nil {
		return nil, err
	}
	payload, up, down, err := r.read(out, message)
	if err != nil {
		return nil, err
	}
	s.Send, s.Receive = take(up), take(down)
	r.end()
	return payload, nil
}

// Forget ends a handshake that is not needed any more.
func (r *Requester) Forget() { r.end() }
