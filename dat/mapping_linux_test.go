package dat

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

const testPage = 4096

// mapped returns anonymous memory that is unmapped at the end of the test.
func mapped(t testing.TB, size, prot int) []byte {
	t.Helper()
	mem := must(syscall.Mmap(-1, 0, size, prot, syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE))(t)
	t.Cleanup(func() { _ = syscall.Munmap(mem) })
	return mem
}

// Registration fails if the mapping of any part of the memory does not allow the privileges.
func TestRegisterWhatIsMapped(t *testing.T) {
	const r, w = syscall.PROT_READ, syscall.PROT_WRITE
	for _, list := range []bool{false, true} {
		t.Run(map[bool]string{false: "query", true: "list"}[list], func(t *testing.T) {
			h := newHost(t, newSim(t), 0, Options{})
			_ = h.ia.a.mapChecker.checkRange(make([]byte, 1), MemAll)
			if h.ia.a.mapChecker.noQuery && !list {
				t.Skip("this kernel has no PROCMAP_QUERY")
			}
			h.ia.a.mapChecker.noQuery = list
			half := mapped(t, 2*testPage, r|w)
			ok(t, syscall.Mprotect(half[testPage:], r))
			hole := mapped(t, 3*testPage, r|w)
			ok(t, syscall.Mprotect(hole[testPage:2*testPage], syscall.PROT_NONE))
			gone, lose := memoryLosses[0].newMemory(t, testPage)
			lose()
			for _, tc := range []struct {
				name string
				mem  []byte
				priv MemPriv
				text string // the text of the error; empty: no error
			}{
				{"heap", make([]byte, 1<<20), MemAll | MemRemoteAtomic, ""},
				{"read-write", mapped(t, testPage, r|w), MemAll | MemRemoteAtomic, ""},
				{"read-only, to be read", mapped(t, testPage, r), MemLocalRead | MemRemoteRead, ""},
				{"read-only, to be written by peers", mapped(t, testPage, r), MemLocalRead | MemRemoteWrite, "is mapped read-only"},
				{"read-only, to be written from here", mapped(t, testPage, r), MemLocalWrite, "is mapped read-only"},
				{"read-only, atomics", mapped(t, testPage, r), MemRemoteAtomic, "is mapped read-only"},
				{"without access", mapped(t, testPage, syscall.PROT_NONE), MemLocalRead, "is mapped without access"},
				{"without access, no privilege", mapped(t, testPage, syscall.PROT_NONE), MemNone, ""},
				{"read-only from the second page", half, MemAll, "is mapped read-only"},
				{"the first of these pages", half[:testPage], MemAll, ""},
				{"one byte of the second", half[:testPage+1], MemAll, "is mapped read-only"},
				{"the end of these pages, to be read", half[100:], MemLocalRead, ""},
				{"hole", hole, MemLocalRead, "is mapped without access"},
				{"behind the hole", hole[2*testPage:], MemAll, ""},
				{"not mapped", gone, MemLocalRead, "is not mapped"},
			} {
				lmr, err := h.ia.CreateLMR(tc.mem, h.pz, tc.priv)
				if tc.text == "" {
					if err != nil {
						t.Errorf("%s: %v", tc.name, err)
						continue
					}
					ok(t, lmr.Free())
					continue
				}
				if !errors.Is(err, ErrInvalidParameter) || !strings.Contains(err.Error(), tc.text) {
					t.Errorf("%s: got %v, want ErrInvalidParameter that says it %s", tc.name, err, tc.text)
				}
			}
		})
	}
}

// A kernel before 6.11 refuses PROCMAP_QUERY, and so does an ordinary file. In this case the file is read.
func TestRegisterWithoutQuery(t *testing.T) {
	h := newHost(t, newSim(t), 0, Options{})
	name := t.TempDir() + "/maps"
	ok(t, os.WriteFile(name, nil, 0o600))
	m := &h.ia.a.mapChecker
	m.name = name
	must(h.ia.CreateLMR(make([]byte, testPage), h.pz, MemAll))(t)
	if !m.noQuery || m.fd >= 0 {
		t.Errorf("the list is read: %v, descriptor %d", m.noQuery, m.fd)
	}
	if _, err := h.ia.CreateLMR(mapped(t, testPage, syscall.PROT_READ), h.pz, MemAll); !errors.Is(err, ErrInvalidParameter) {
		t.Errorf("read-only memory: %v", err)
	}
}

// If the system does not list the mappings, registration does not check the memory.
func TestRegisterWithoutMaps(t *testing.T) {
	h := newHost(t, newSim(t), 0, Options{})
	h.ia.a.mapChecker.once.Do(func() { h.ia.a.mapChecker.fd, h.ia.a.mapChecker.err = -1, syscall.ENOENT })
	must(h.ia.CreateLMR(mapped(t, testPage, syscall.PROT_READ), h.pz, MemAll))(t)
}

// Registering a sparse region does not allocate its pages.
func TestRegisterSparse(t *testing.T) {
	h := newHost(t, newSim(t), 0, Options{})
	const size = 16 << 30
	most := must(h.ia.Query())(t).MaxLMRBlockSize
	if size > most {
		t.Skipf("a region has %d bytes at most", most)
	}
	mem := mapped(t, size, syscall.PROT_READ|syscall.PROT_WRITE)
	before, start := residentPages(t), time.Now()
	lmr := must(h.ia.CreateLMR(mem, h.pz, MemAll))(t)
	took, grown := time.Since(start), (residentPages(t)-before)*testPage
	t.Logf("16 GiB: %v, resident memory grew by %d KiB", took, grown>>10)
	if grown > 64<<20 {
		t.Errorf("registering 16 GiB made %d bytes resident", grown)
	}
	ok(t, lmr.Free())
}

// residentPages returns the size of the resident set of this process, in pages.
func residentPages(t testing.TB) (pages int) {
	t.Helper()
	text := must(os.ReadFile("/proc/self/statm"))(t)
	if _, err := fmt.Sscan(string(text), new(int), &pages); err != nil {
		t.Fatal(err)
	}
	return pages
}

// memoryLosses has the ways in which registered memory can become inaccessible. newMemory returns memory of a given
// size, and the function lose, which makes that memory inaccessible.
var memoryLosses = []struct {
	name      string
	newMemory func(t testing.TB, size int) (mem []byte, lose func())
}{
	{"unmapped", func(t testing.TB, size int) ([]byte, func()) {
		const room = 64 << 20 // large, so that later mappings do not reuse its first pages
		mem := must(syscall.Mmap(-1, 0, room, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE))(t)
		return mem[:size:size], func() { ok(t, syscall.Munmap(mem)) }
	}},
	{"protected", func(t testing.TB, size int) ([]byte, func()) {
		mem := mapped(t, size, syscall.PROT_READ|syscall.PROT_WRITE)
		return mem, func() { ok(t, syscall.Mprotect(mem, syscall.PROT_NONE)) }
	}},
	{"file truncated", func(t testing.TB, size int) ([]byte, func()) {
		f := must(os.CreateTemp(t.TempDir(), ""))(t)
		t.Cleanup(func() { f.Close() })
		ok(t, f.Truncate(int64(size)))
		mem := must(syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED))(t)
		t.Cleanup(func() { _ = syscall.Munmap(mem) })
		return mem, func() { ok(t, f.Truncate(0)) }
	}},
}
