package identity

import (
	"io/fs"
	"os"
	"time"
)

// version tells one content of the files of a host from another.
type version [2]fileVersion

// fileVersion is the version of one file. It is zero if there is no file.
type fileVersion struct {
	info     fs.FileInfo // for os.SameFile
	size     int64
	mode     fs.FileMode
	modified time.Time
}

// isFile reports whether both are versions of one file.
func (a fileVersion) isFile(b fileVersion) bool {
	return a.info != nil && b.info != nil && os.SameFile(a.info, b.info)
}

func (a fileVersion) same(b fileVersion) bool {
	if a.info == nil || b.info == nil {
		return a.info == b.info
	}
	return os.SameFile(a.info, b.info) && a.size == b.size && a.mode == b.mode && a.modified.Equal(b.modified)
}

func (v version) same(o version) bool { return v[0].same(o[0]) && v[1].same(o[1]) }

// version returns the version of the files that the options and the environment name now.
//
// System calls: newfstatat.
func (f *Files) version() (v version) {
	for i, name := range []string{f.Source(), f.Peers} {
		if info, err := os.Stat(name); err == nil {
			v[i] = fileVersion{info, info.Size(), info.Mode(), info.ModTime()}
		}
	}
	return v
}

// Watcher tells when the files of a Store have to be read again. One goroutine at a time uses it.
type Watcher struct {
	store *Store
	seen  version // at the last call of Changed
}

// Watch returns a watcher of the files.
func (s *Store) Watch() *Watcher { return &Watcher{s, s.Current().version} }

// Changed reports whether the files have changed since they were read, but not since the last call of Changed. So a file
// that is being written is not read, if the time between two calls is longer than the writing takes.
func (w *Watcher) Changed() bool {
	last, now := w.seen, w.store.files.version()
	w.seen = now
	return now.same(last) && !now.same(w.store.Current().version)
}
