package dat

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"sort"
	"sync"
	"syscall"
)

// mapsFile lists the mappings of the process.
const mapsFile = "/proc/self/maps"

// mappings tells what the memory of this process is mapped for, without touching it: it may be sparse. Linux 6.11 and
// later answer for one address (PROCMAP_QUERY); before that the whole list is read.
//
// This finds mistakes of the consumer early. It protects from none: memory may be unmapped after the check.
type mappings struct {
	once sync.Once
	fd   int
	name string // of the list; empty: mapsFile
	list bool   // the kernel has no PROCMAP_QUERY
	err  error  // there is no list of mappings
}

// open finds out how to ask.
//
// System calls: open, ioctl; close if that is not supported.
func (m *mappings) open() {
	if m.name == "" {
		m.name = mapsFile
	}
	if m.fd, m.err = syscall.Open(m.name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0); m.err != nil {
		m.fd = -1
		return
	}
	if _, err := queryMapping(m.fd, 0); err != nil && err != syscall.ENOENT {
		m.list = true
		m.release()
	}
}

// close gives the open file back. No check comes after it.
func (m *mappings) close() {
	m.once.Do(func() { m.fd = -1 })
	m.release()
}

func (m *mappings) release() {
	if m.fd >= 0 {
		_ = syscall.Close(m.fd)
		m.fd = -1
	}
}

// check returns ErrInvalidParameter if mem is not mapped for what the privileges allow. Where the system does not tell
// what is mapped, everything is taken to be.
//
// System calls: ioctl for each mapping that mem lies in, usually one.
func (m *mappings) check(mem []byte, priv MemPriv) error {
	if m.once.Do(m.open); m.err != nil {
		return nil
	}
	var list []mapping
	if m.list {
		var err error
		if list, err = listMappings(); err != nil {
			return nil
		}
	}
	need, addr := protOf(priv), addressOf(mem)
	for end := addr + uint64(len(mem)); addr < end; {
		at, err := m.find(list, addr)
		if err != nil {
			return nil
		}
		if why := at.missing(addr, need); why != "" {
			return fail(ErrInvalidParameter, "memory at %#x %s, which privileges %#x need; map it so, or ask for less", addr, why, uint8(priv))
		}
		addr = at.end
	}
	return nil
}

// find is the mapping that holds an address; an empty one if none does.
func (m *mappings) find(list []mapping, addr uint64) (mapping, error) {
	if !m.list {
		at, err := queryMapping(m.fd, addr)
		if err == syscall.ENOENT {
			return mapping{}, nil
		}
		return at, err
	}
	if i := sort.Search(len(list), func(i int) bool { return addr < list[i].end }); i < len(list) {
		return list[i], nil
	}
	return mapping{}, nil
}

// listMappings reads what is mapped, in the order of addresses.
//
// System calls: open, read, close.
func listMappings() ([]mapping, error) {
	all, err := os.ReadFile(mapsFile) // at once: this program's mappings change meanwhile
	if err != nil {
		return nil, err
	}
	var list []mapping
	for lines := bufio.NewScanner(bytes.NewReader(all)); lines.Scan(); {
		var at mapping
		var rights string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %4s", &at.start, &at.end, &rights); err != nil {
			return nil, fmt.Errorf("dat: reading %s: %w", mapsFile, err)
		}
		if rights[0] == 'r' {
			at.prot |= protRead
		}
		if rights[1] == 'w' {
			at.prot |= protWrite
		}
		list = append(list, at)
	}
	return list, nil
}

// prot is what a mapping of this process allows.
type prot uint8

const (
	protRead prot = 1 << iota
	protWrite
)

// protOf is what memory privileges need. Memory that can be written can be read.
func protOf(priv MemPriv) (p prot) {
	if priv&(MemLocalWrite|MemRemoteWrite|MemRemoteAtomic) != 0 {
		p |= protWrite
	}
	if priv&(MemLocalRead|MemRemoteRead) != 0 {
		p |= protRead
	}
	return p
}

// mapping is a range of addresses of this process that has one protection.
type mapping struct {
	start, end uint64
	prot       prot
}

// missing says why a mapping that should hold addr is not good for what is needed; empty if it is.
func (m mapping) missing(addr uint64, need prot) string {
	switch {
	case addr < m.start || addr >= m.end:
		return "is not mapped"
	case need&^m.prot == 0:
		return ""
	case m.prot&protRead == 0:
		return "is mapped without access"
	default:
		return "is mapped read-only"
	}
}
