package congestion

// noise measures the share of lost packets, to tell random losses from losses in a full queue that is too short to be
// seen in the delay (the loss threshold of BBRv2).
type noise struct{ packets, losses int32 }

// acked counts acknowledged packets. Old packets lose their weight by halving.
func (s *noise) acked(n int) {
	if s.packets += int32(n); s.packets >= 2*NoisePackets {
		s.packets, s.losses = s.packets/2, s.losses/2
	}
}

func (s *noise) lost(n int) { s.losses += int32(n) }

// exceeds reports whether more than one of NoiseShare packets was lost.
func (s *noise) exceeds() bool { return s.losses*NoiseShare > max(s.packets, NoisePackets) }
