package wire

const none int32 = -1

const (
	slotMask = 1<<slotBits - 1
	genMask  = 1<<genBits - 1
)

// slotEntry is a slot of the connection table. It contains a connection, a linger, or neither.
type slotEntry struct {
	conn   *Conn
	linger *linger
	gen    uint32
}

// connTable maps connection IDs to connections. An ID consists of engine, generation and slot, so a lookup only indexes
// an array. The ID is not secret: the verification tag authenticates a packet. Only the engine's owner uses the table.
type connTable struct {
	engine    uint32 // number of the engine in connection IDs
	firstGen  uint32 // of each slot, minus 1
	slots     []slotEntry
	free      []int32 // freed slots, oldest first
	usedSlots int     // slots in use
	abandoned int     // slots in use by abandoned attempts
	closed    closedConns

	// result of the last lookup
	lastCID  uint32
	lastConn *Conn
}

// minFreeSlots is the number of freed slots that the table keeps before it reuses the oldest one. A slot has 127
// generations, and gets the next one when it is reused. So an ID repeats only after thousands of connections. Until then,
// a late packet finds no new connection under its ID. The first generation is random, so that a process that has restarted
// rarely repeats the IDs of the one before: its peers may have connections of both.
const minFreeSlots = 64

func (t *connTable) takeSlot(c *Conn) (int32, uint32, error) {
	var slot int32
	switch {
	case len(t.slots) < maxConns && len(t.free) < minFreeSlots:
		slot = int32(len(t.slots))
		t.slots = append(t.slots, slotEntry{gen: t.firstGen})
	case len(t.free) > 0:
		slot, t.free = t.free[0], t.free[1:]
	default:
		return none, 0, ErrTooManyConns
	}
	s := &t.slots[slot]
	s.conn, s.gen = c, s.gen%genMask+1 // a generation is never 0, so an ID is never 0
	t.usedSlots++
	return slot, t.engine<<(genBits+slotBits) | s.gen<<slotBits | uint32(slot), nil
}

func (t *connTable) freeSlot(slot int32) {
	t.slots[slot].conn, t.slots[slot].linger = nil, nil
	t.free = append(t.free, slot)
	t.lastConn = nil
	t.usedSlots--
}

// detach replaces the connection in a slot by its linger.
func (t *connTable) detach(slot int32, l *linger) {
	t.slots[slot].conn, t.slots[slot].linger = nil, l
	t.lastConn = nil
}

// findSlot returns the entry and the slot that a connection ID names, and the number of the engine in the ID. The entry
// is nil if the ID belongs to another engine, names a slot past the end of the table, or has an old generation.
func (t *connTable) findSlot(cid uint32) (s *slotEntry, slot int32, engine int) {
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
