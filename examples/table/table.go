package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
	"hash/fnv"
	"time"
)

// The table is an array of entries. The hash of a key selects 8 adjacent entries (the constant probes) that may hold
// the key. A key is stored in the entry that already has it, or else in the first empty one of the 8. An entry is never
// emptied. The layout of an entry, in bytes:
//
//	0    checksum of bytes 8 to 119 and of the even version that the entry was written with
//	8    length of the key, length of the value, 1 byte each
//	10   key, value
//	120  version: 0 for empty; odd while a client has locked the entry to write it
//
// A put reads the entry, locks it by a compare-and-swap of the version from v to v+1, and writes the whole entry with
// version v+2 by one RDMA write. DAT places the last aligned word of a write last. This word is the version, so the
// entry is complete when its version unlocks it.
//
// A get reads the entry and compares the checksum. A torn entry, one that was read while it was being written, does not
// match its checksum and is read again. A torn entry is not detected with a probability of 2^-64.
//
// Gets and puts of one key are linearizable: a get returns the value of the last completed put, or of a put that is
// running. There is no guarantee across keys.
//
// A client that dies between lock and write leaves its entry locked. Gets of this entry still work, but puts fail. A
// real store would give a lock an owner and a timeout. All hosts need the same byte order.
const (
	entries   = 4096
	probes    = 8 // number of entries that a key may have; one read fetches them all
	entrySize = 128
	lengthsAt = 8
	bytesAt   = 10
	versionAt = 120
	maxBytes  = versionAt - bytesAt // bytes of a key and its value together
	tableSize = (entries + probes) * entrySize
)

var (
	errNoKey  = errors.New("no such key")
	errLocked = errors.New("a client has locked the entry of this key and not written it")
)

type entry []byte

func (e entry) version() uint64     { return binary.NativeEndian.Uint64(e[versionAt:]) }
func (e entry) setVersion(v uint64) { binary.NativeEndian.PutUint64(e[versionAt:], v) }
func (e entry) locked() bool        { return e.version()&1 != 0 }

// vacant reports whether no put of this entry has completed: it is empty, or locked for the first time.
func (e entry) vacant() bool { return e.version() <= 1 }

var ecma = crc64.MakeTable(crc64.ECMA)

// checksum returns the checksum of the entry, if it was written with this version.
func (e entry) checksum(version uint64) uint64 {
	seed := crc64.Checksum(binary.NativeEndian.AppendUint64(nil, version), ecma)
	return crc64.Update(seed, ecma, e[lengthsAt:versionAt])
}

// whole reports whether one put has written the entry completely. A lock alone does not change the entry.
func (e entry) whole() bool {
	return binary.NativeEndian.Uint64(e) == e.checksum(e.version()&^1) && int(e[lengthsAt])+int(e[lengthsAt+1]) <= maxBytes
}

func (e entry) pair() (key, value string) {
	k, v := int(e[lengthsAt]), int(e[lengthsAt+1])
	return string(e[bytesAt:][:k]), string(e[bytesAt+k:][:v])
}

// fill sets the content of an entry for a put.
func (e entry) fill(key, value string, version uint64) {
	clear(e)
	e[lengthsAt], e[lengthsAt+1] = byte(len(key)), byte(len(value))
	copy(e[bytesAt:], key+value)
	e.setVersion(version)
	binary.NativeEndian.PutUint64(e, e.checksum(version))
}

// home returns the index of the first entry that a key may have.
func home(key string) int {
	h := fnv.New64a()
	h.Write([]byte(key))
	return int(h.Sum64() % entries)
}

// find reads the entries that a key may have. It returns the index and content of the key's entry, or of the first
// vacant one if the key is not stored. The index is negative if other keys have all of these entries. If find meets a
// torn entry first, ok is false and the caller must try again.
func (c *client) find(ctx context.Context, key string) (i int, e entry, ok bool, err error) {
	first := home(key)
	if err := c.read(ctx, first); err != nil {
		return 0, nil, false, err
	}
	for p := range probes {
		e := entry(c.data[p*entrySize:][:entrySize])
		if e.vacant() {
			return first + p, e, true, nil
		}
		if !e.whole() {
			return 0, nil, false, nil
		}
		if k, _ := e.pair(); k == key {
			return first + p, e, true, nil
		}
	}
	return -1, nil, true, nil
}

// get returns the value of a key.
func (c *client) get(ctx context.Context, key string) (value string, err error) {
	err = c.retry(func() (bool, error) {
		i, e, ok, err := c.find(ctx, key)
		if err != nil || !ok {
			return false, err
		}
		if i < 0 || e.vacant() {
			return false, errNoKey
		}
		_, value = e.pair()
		return true, nil
	})
	return value, err
}

// put stores a value.
func (c *client) put(ctx context.Context, key, value string) error {
	if key == "" || len(key)+len(value) > maxBytes {
		return fmt.Errorf("a key of %d and a value of %d bytes: the key may not be empty, both may have %d", len(key), len(value), maxBytes)
	}
	return c.retry(func() (bool, error) {
		i, e, ok, err := c.find(ctx, key)
		if err != nil || !ok {
			return false, err
		}
		if i < 0 {
			return false, fmt.Errorf("no room for %q: all %d entries that it may have are taken", key, probes)
		}
		if e.locked() {
			return false, nil
		}
		v := e.version()
		if mine, err := c.swap(ctx, i, v, v+1); err != nil || !mine {
			return false, err
		}
		entry(c.data[writeAt:][:entrySize]).fill(key, value, v+2)
		return true, c.write(ctx, i)
	})
}

// retry calls try until it is done or fails, for at most the client's patience. There is no pause between two calls,
// because each takes a round trip.
func (c *client) retry(try func() (done bool, err error)) error {
	for start := time.Now(); time.Since(start) < c.patience; {
		if done, err := try(); done || err != nil {
			return err
		}
	}
	return errLocked
}
