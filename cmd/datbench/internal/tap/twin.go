package tap

import "github.com/datxdp/datxdp/link"

// twin is a packet that is delivered again when its holder has freed all its frames.
type twin struct {
	bufs []link.Buf // as received; empty for an unused twin
	back []bool     // for each Buf: the holder has freed it
	data []byte     // the content as received
	left int        // number of Bufs that the holder still has
}

// expect records a packet for a second delivery, if there is room.
func (t *Impaired) expect(pkt []link.Buf) {
	for i := range t.twins {
		w := &t.twins[i]
		if len(w.bufs) > 0 {
			continue
		}
		w.bufs = append(w.bufs, pkt...)
		for j := range pkt {
			w.back = append(w.back, false)
			w.data = append(w.data, pkt[j].Data...)
		}
		w.left = len(pkt)
		t.live++
		return
	}
}

// owner returns the twin that a frame belongs to, and the frame's index in it; nil if there is none.
func (t *Impaired) owner(frame uint32) (*twin, int) {
	for i := range t.twins {
		for j := range t.twins[i].bufs {
			if t.twins[i].bufs[j].Frame == frame {
				return &t.twins[i], j
			}
		}
	}
	return nil, 0
}

// Free implements link.Link.
func (t *Impaired) Free(bufs []link.Buf) {
	if t.live == 0 {
		t.Link.Free(bufs)
		return
	}
	for i := range bufs {
		w, j := t.owner(bufs[i].Frame)
		if w == nil || w.back[j] { // the link below handles a double Free
			t.Link.Free(bufs[i : i+1])
			continue
		}
		w.back[j] = true
		if w.left--; w.left == 0 {
			t.repeat(w)
		}
	}
}

// repeat delivers a packet again.
func (t *Impaired) repeat(w *twin) {
	t.duplicated.Add(1)
	rest := w.data
	for i := range w.bufs {
		rest = rest[copy(w.bufs[i].Data, rest):]
	}
	t.out = append(t.out, w.bufs...)
	t.busy.Store(true)
	w.reset()
	t.live--
}

// forget drops a duplicate and frees the frames that were already returned.
func (t *Impaired) forget(w *twin) {
	if len(w.bufs) == 0 {
		return
	}
	for i := range w.bufs {
		if w.back[i] {
			t.Link.Free(w.bufs[i : i+1])
		}
	}
	w.reset()
	t.live--
}

func (w *twin) reset() {
	w.bufs, w.back, w.data = w.bufs[:0], w.back[:0], w.data[:0]
}

// Send implements link.Link. A received frame that is sent cannot be delivered again.
func (t *Impaired) Send(bufs []link.Buf) {
	for i := 0; i < len(bufs) && t.live > 0; i++ {
		if w, _ := t.owner(bufs[i].Frame); w != nil {
			t.forget(w)
		}
	}
	t.Link.Send(bufs)
}
