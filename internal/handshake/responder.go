package handshake

import "io"

// Responder is the end that answers message 1: the server.
type Responder struct {
	state
	peer PublicKey
}

// Respond reads message 1, and appends its payload to out. No secret exists before Reply.
func Respond(t *Terms, out, message []byte) (r *Responder, payload []byte, err error) {
	r = &Responder{}
	if err := checkLength(len(message), t.Form().RequestHead()); err != nil {
		return nil, nil, err
	}
	if err := r.start(t, false, nil); err != nil {
		return nil, nil, err
	}
	payload, _, _, err = r.read(out, message)
	if err != nil {
		r.end()
		return nil, nil, err
	}
	copy(r.peer[:], r.noise.PeerStatic())
	return r, payload, nil
}

// Peer returns the public key of the requester. It is 0 in NNpsk0.
func (r *Responder) Peer() PublicKey { return r.peer }

// Reply appends message 2 with the payload to out, and writes the secrets to s. It reads KeySize bytes from random, so
// two replies to the same message 1 have different secrets.
func (r *Responder) Reply(random io.Reader, out, payload []byte, s *Secrets) (message []byte, err error) {
	if r.noise == nil {
		return nil, ErrState
	}
	r.keys.random = random
	message, up, down, err := r.write(out, payload)
	if err != nil {
		return nil, err
	}
	s.Send, s.Receive = take(down), take(up)
	r.end()
	return message, nil
}

// Forget ends a handshake that is not answered.
func (r *Responder) Forget() { r.end() }
