package wire

const none int32 = -1

const (
	slotMask = 1<<slotBits - 1
	genMask  = 1<<genBits - 1
)

// slotEntry is one place of the connection table: a connection, or what lingers of one.
type slotEntry struct {
	conn   *Conn
	linger *linger
	gen    uint32
}

// connTable names connections. A connection ID consists of engine, generation and slot, so that finding
// the connection is arithmetic. The ID is a name and no secret: the verification tag tells whether a
// packet is the peer's. One owner.
type connTable struct {
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
	s.conn, s.gen = c, s.gen%genMask+1 // never 0, so that no ID is
	t.live++
	return slot, t.engine<<(genBits+slotBits) | s.gen<<slotBits | uint32(slot), nil
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
	slot = int32(cid & slotMask)
	engine = int(cid >> (genBits + slotBits))
	if engine != int(t.engine) || int(slot) >= len(t.slots) {
		return nil, slot, engine
	}
	if s = &t.slots[slot]; s.gen != cid>>slotBits&genMask {
		return nil, slot, engine
	}
	return s, slot, engine
}
