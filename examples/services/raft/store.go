package main

import (
	"encoding/json"
	"io"
	"maps"
	"sync"

	"github.com/hashicorp/raft"
)

// Operations.
const (
	opGet = "get"
	opPut = "put"
	opCAS = "cas" // compare and swap
)

// command is an entry of the log, in JSON.
type command struct {
	Op    string
	Key   string
	Value string // new value
	Old   string // expected value of opCAS
}

// result is the answer to a command.
type result struct {
	OK    bool   // the key exists, or the command has set it
	Value string // of opGet
	Node  string // that has answered
}

// store is the state machine. Raft calls its methods.
type store struct {
	mu     sync.Mutex
	index  uint64 // of the last command
	values map[string]string
}

var _ raft.FSM = (*store)(nil)

func newStore() *store { return &store{values: map[string]string{}} }

// state is the content of a store.
type state struct {
	Index  uint64
	Values map[string]string
}

func (s *store) state() state {
	s.mu.Lock()
	defer s.mu.Unlock()
	return state{s.index, maps.Clone(s.values)}
}

// Apply implements raft.FSM: it runs a committed command and returns its result, or an error if it is none.
func (s *store) Apply(l *raft.Log) any {
	var c command
	if err := json.Unmarshal(l.Data, &c); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index = l.Index
	return s.run(c)
}

func (s *store) run(c command) (r result) {
	now, found := s.values[c.Key]
	switch c.Op {
	case opGet:
		r.OK, r.Value = found, now
	case opPut:
		r.OK = true
	case opCAS:
		r.OK = found && now == c.Old
	}
	if r.OK && c.Op != opGet {
		s.values[c.Key] = c.Value
	}
	return r
}

// Snapshot implements raft.FSM.
func (s *store) Snapshot() (raft.FSMSnapshot, error) { return snapshot(s.state()), nil }

// Restore implements raft.FSM.
func (s *store) Restore(r io.ReadCloser) error {
	defer r.Close()
	var st state
	if err := json.NewDecoder(r).Decode(&st); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index, s.values = st.Index, st.Values
	return nil
}

// snapshot is a copy of a state that raft writes to a file.
type snapshot state

// Persist implements raft.FSMSnapshot.
func (s snapshot) Persist(sink raft.SnapshotSink) error {
	if err := json.NewEncoder(sink).Encode(s); err != nil {
		_ = sink.Cancel() // the first error counts
		return err
	}
	return sink.Close()
}

// Release implements raft.FSMSnapshot.
func (s snapshot) Release() {}
