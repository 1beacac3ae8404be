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

// mappingChecker checks whether memory of this process is mapped, and with which protection. It asks the kernel, and
// does not touch the memory, which may be sparse. On Linux 6.11 and later it uses the ioctl PROCMAP_QUERY, which looks
// up one address. On older kernels every check reads all of mapsFile.
//
// The check finds mistakes of the consumer early. It gives no protection, because the memory may be unmapped after the
// check.
type mappingChecker struct {
	once    sync.Once
	fd      int    // mapsFile, opened for PROCMAP_QUERY; -1 if it is not open
	name    string // the file to open for PROCMAP_QUERY; empty means mapsFile
	noQuery bool   // the kernel has no PROCMAP_QUERY, so each check reads the file
	err     error  // the file could not be opened; every check then succeeds
}

// openFile opens mapsFile and finds out whether the kernel supports the ioctl PROCMAP_QUERY.
//
// System calls: open and ioctl. If the kernel does not support PROCMAP_QUERY, also close.
func (m *mappingChecker) openFile() {
	if m.name == "" {
		m.name = mapsFile
	}
	if m.fd, m.err = syscall.Open(m.name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0); m.err != nil {
		m.fd = -1
		return
	}
	if _, err := queryMapping(m.fd, 0); err != nil && err != syscall.ENOENT {
		m.noQuery = true
		m.release()
	}
}

// close closes the file. The caller must not call checkRange afterwards.
func (m *mappingChecker) close() {
	m.once.Do(func() { m.fd = -1 })
	m.release()
}

func (m *mappingChecker) release() {
	if m.fd >= 0 {
		_ = syscall.Close(m.fd)
		m.fd = -1
	}
}

// checkRange returns ErrInvalidParameter if mem is not mapped, or if its protection does not allow the accesses of
// priv. It returns nil if the system does not report mappings.
//
// System calls: one ioctl (PROCMAP_QUERY) for each mapping that mem covers; usually this is one mapping. If the kernel
// does not support PROCMAP_QUERY, the calls are open, read and close instead.
func (m *mappingChecker) checkRange(mem []byte, priv MemPriv) error {
	if m.once.Do(m.openFile); m.err != nil {
		return nil
	}
	var list []mapping
	if m.noQuery {
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
			return fail(ErrInvalidParameter, "memory at %#x %s; change the mapping or the privileges %#x", addr, why, uint8(priv))
		}
		addr = at.end
	}
	return nil
}

// find returns the mapping that contains addr. If there is none, it returns another mapping or an empty one.
func (m *mappingChecker) find(list []mapping, addr uint64) (mapping, error) {
	if !m.noQuery {
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

// listMappings reads the list of mappings, ordered by address.
//
// System calls: open, read, close.
func listMappings() ([]mapping, error) {
	all, err := os.ReadFile(mapsFile) // before parsing, which may change the mappings of this process
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

// prot is the protection of a mapping: the accesses that it allows.
type prot uint8

const (
	protRead prot = 1 << iota
	protWrite
)

// protOf returns the protection that memory privileges need. A writable mapping counts as readable.
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

// missing returns "" if the mapping contains addr and allows the needed accesses. Otherwise it returns the reason.
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
