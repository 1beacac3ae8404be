package udplink

const (
	// mergedSize is the largest size in bytes of a message that the kernel merges.
	mergedSize = 1<<16 - 1
	// mergedBlocks is the number of blocks if the kernel merges packets.
	mergedBlocks = 64
	// maxSegments is the largest number of packets in a received message (UDP_MAX_SEGMENTS since Linux 6.9).
	maxSegments = 128
	// keptSpare is the number of kept frames beyond Caps.RxFrames. While the holder handles a batch, it may give up kept
	// frames that come back only at the end of the batch.
	keptSpare = 2 * mergedBlocks
	// keptBytes and maxKept give the number of kept frames: as many as keptBytes hold, but at least Options.Frames and at
	// most maxKept, which is the largest receive window of a connection.
	keptBytes = 4 << 20
	maxKept   = 1024
	// blockGap is added to the distance of two blocks. Without it, the headers of all blocks would compete for the same
	// few lines of the cache.
	blockGap = 5 * 64
)

// slab is the memory of all frames. It consists of three parts:
//   - blocks, into which the socket receives,
//   - kept frames, for copies of received packets that stay longer than their block,
//   - transmit frames.
//
// Frames are numbered in this order. If the kernel merges packets, a block has perBlock frame numbers, one for each
// packet in it. Otherwise a block is one frame, and there are no kept frames.
type slab struct {
	mem      []byte
	size     int    // of a frame in bytes
	stride   int    // distance of two blocks in bytes
	block    int    // size of a block in bytes
	blocks   uint32 // number of blocks
	perBlock uint32 // frame numbers per block
	kept     uint32 // number of kept frames
	tx       uint32 // number of transmit frames
}

// keptFrames returns the number of received frames of size bytes that the holder may keep.
func keptFrames(least, size int) int { return max(least, min(keptBytes/size, maxKept)) }

// newSlab describes a slab with as many blocks as transmit frames.
func newSlab(frames, size int) slab {
	return slab{size: size, stride: size, block: size, blocks: uint32(frames), perBlock: 1, tx: uint32(frames)}
}

// merge makes the blocks large enough for merged packets.
func (s *slab) merge(blocks, kept int) {
	s.block, s.stride = mergedSize, mergedSize+1+blockGap
	s.blocks, s.perBlock, s.kept = uint32(blocks), maxSegments, uint32(kept)
}

func (s *slab) allocate() { s.mem = make([]byte, int(s.blocks)*s.stride+int(s.kept+s.tx)*s.size) }

// received returns the number of the first frame after the blocks.
func (s *slab) received() uint32 { return s.blocks * s.perBlock }

// blockData returns the memory of a block.
func (s *slab) blockData(b uint32) []byte {
	at := int(b) * s.stride
	return s.mem[at : at+s.block : at+s.block]
}

// small returns the memory of a kept frame or of a transmit frame.
func (s *slab) small(frame uint32) []byte {
	at := int(s.blocks)*s.stride + int(frame-s.received())*s.size
	return s.mem[at : at+s.size : at+s.size]
}

// transmit returns the numbers of all transmit frames.
func (s *slab) transmit() (free []uint32) {
	first := s.received() + s.kept
	for f := s.tx; f > 0; f-- {
		free = append(free, first+f-1)
	}
	return free
}
