package wire

const none int32 = -1

const (
	slotMask = 1<<slotBits - 1
	genMask  = 1<<genBits - 1
)

// slotEntry is a slot of the connection table. It has a connection, the linger of one, or neither.
type slotEntry struct {
	conn   *Conn
	linger *linger
	gen    uint32
}

// connTable maps connection IDs to connections. An ID consists of engine, generation and slot, so that a lookup is an
// index and needs no hashing. The ID is not secret: the verification tag authenticates a packet. The engine's owner
// uses the table.
type connTable struct {
	engine uint32
	slots  []slotEntry
	free   []int32 // freed slots, oldest first
	live   int     // slots in use

	// cache of the last lookup
	lastCID  uint32
	lastConn *Conn
}

// minFreeSlots is the number of freed slots that the table collects before it reuses the oldest one. So it takes many
// connections until an ID repeats, and a late packet does not find a new connection with its ID.
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
	s.conn, s.gen = c, s.gen%genMask+1 // the generation is never 0, hence neither is an ID
	t.live++
	return slot, t.engine<<(genBits+slotBits) | s.gen<<slotBits | uint32(slot), nil
}

func (t *connTable) release(slot int32) {
	t.slots[slot].conn, t.slots[slot].linger = nil, nil
	t.free = append(t.free, slot)
	t.lastConn = nil
	t.live--
}

// detach replaces the connection in a slot by its linger.
func (t *connTable) detach(slot int32, l *linger) {
	t.slots[slot].conn, t.slots[slot].linger = nil, l
	t.lastConn = nil
}

// find returns the entry, the slot and the engine that a connection ID names. s is nil if the ID belongs to another
// engine or if the generation is old.
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
