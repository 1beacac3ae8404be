package claim

import "sync"

// mu guards all state of the package.
var mu sync.Mutex

// locks are record locks on the file of a network namespace. Each record is one byte.
type locks interface {
	// lock locks a record, for as long as no other process has locked it. It returns ErrInUse or errRace.
	lock(record int64) error
	unlock(record int64)
	close() error
}

// space has the claims of this process in a network namespace. mu guards it.
type space struct {
	locks
	inode  uint64 // of the namespace; key in spaces
	users  int
	counts map[int64]int // number of Addresses that have claimed a record
}

// spaces has the network namespaces in use.
var spaces = make(map[uint64]*space)

// openSpace returns the space of the calling thread's network namespace, for one more user.
func openSpace() (*space, error) {
	l, inode, err := openLocks()
	if err != nil {
		return nil, err
	}
	s := spaces[inode]
	if s == nil {
		s = &space{locks: l, inode: inode, counts: make(map[int64]int)}
		spaces[inode] = s
	} else if err := l.close(); err != nil {
		return nil, err
	}
	s.users++
	return s, nil
}

// take claims a record for one more Address.
func (s *space) take(record int64) error {
	if s.counts[record] == 0 {
		if err := s.lock(record); err != nil {
			return err
		}
	}
	s.counts[record]++
	return nil
}

// give ends the claim of one Address.
func (s *space) give(record int64) {
	if s.counts[record]--; s.counts[record] == 0 {
		delete(s.counts, record)
		s.unlock(record)
	}
}

// leave ends the use by one user.
func (s *space) leave() error {
	if s.users--; s.users > 0 {
		return nil
	}
	delete(spaces, s.inode)
	return s.close()
}
