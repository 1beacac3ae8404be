package wire

import "github.com/datxdp/datxdp/wire/internal/speck"

const none int32 = -1

const (
	slotMask   = 1<<slotBits - 1
	engineMask = 1<<engineBits - 1
	genBits    = 32 - slotBits - engineBits
	genMask    = 1<<genBits - 1
)

// slotEntry is one place of the connection table: a connection, or what lingers of one.
type slotEntry struct {
	conn   *Conn
	linger *linger
	gen    uint32
}

// connTable names connections. A connection ID is the keyed permutation of generation, engine and
// slot, so that finding one is arithmetic and guessing one is not. One owner.
type connTable struct {
	key    *speck.Key
	engine uint32
	slots  []slotEntry
	free   []int32 // oldest first
	live   int

	// the connection that was found last
	lastCID  uint32
	lastConn *Conn
}

// minFreeSlots is how many freed slots are kept back before the oldest is used again, so that a
// late packet does not meet a new connection of the same generation.
const minFreeSlots = 64

func (t *connTable) take(c *Conn) (int32, uint32, error) {
	var slot int32
	switch {
	case len(t.slots) < maxConns && len(t.free) < minFreeSlots:
		slot = int32(len(t.slots))
		t.slots = append(t.slots, slotEntry{})
	case len(t.free) > 0:
		slot, t.free = t.free[0], t.free[1:]
	default:
		return none, 0, ErrTooManyConns
	}
	s := &t.slots[slot]
	s.conn, s.gen = c, (s.gen+1)&genMask
	t.live++
	plain := s.gen<<(slotBits+engineBits) | t.engine<<slotBits | uint32(slot)
	return slot, t.key.Encrypt(plain), nil
}

func (t *connTable) release(slot int32) {
	t.slots[slot].conn, t.slots[slot].linger = nil, nil
	t.free = append(t.free, slot)
	t.lastConn = nil
	t.live--
}

// detach leaves l behind in place of the connection.
func (t *connTable) detach(slot int32, l *linger) {
	t.slots[slot].conn, t.slots[slot].linger = nil, l
	t.lastConn = nil
}

// find is the entry that a connection ID names. With another engine's ID it is nil and engine is
// that engine's index.
func (t *connTable) find(cid uint32) (s *slotEntry, slot int32, engine int) {
	plain := t.key.Decrypt(cid)
	slot = int32(plain & slotMask)
	engine = int(plain >> slotBits & engineMask)
	if engine != int(t.engine) || int(slot) >= len(t.slots) {
		return nil, slot, engine
	}
	if s = &t.slots[slot]; s.gen != plain>>(slotBits+engineBits) {
		return nil, slot, engine
	}
	return s, slot, engine
}
