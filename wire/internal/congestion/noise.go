package congestion

// noise measures the share of lost packets, to tell random losses from those in a full queue.
type noise struct{ packets, losses int32 }

// acked counts acknowledged packets. Old packets lose their weight by halving.
func (s *noise) acked(n int) {
	if s.packets += int32(n); s.packets >= 2*NoisePackets {
		s.packets, s.losses = s.packets/2, s.losses/2
	}
}

func (s *noise) lost(n int) { s.losses += int32(n) }

// exceeds reports whether more packets were lost than random losses explain.
func (s *noise) exceeds() bool { return s.losses > noiseBurst+(s.packets+s.losses)/NoiseShare }
