package identity

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// entry is an entry of an access list.
type entry struct {
	tag, perm uint16
	id        uint32
}

// list returns an access list as the kernel stores it.
func list(entries ...entry) []byte {
	b := binary.LittleEndian.AppendUint32(nil, aclVersion)
	for _, e := range entries {
		b = binary.LittleEndian.AppendUint16(b, e.tag)
		b = binary.LittleEndian.AppendUint16(b, e.perm)
		b = binary.LittleEndian.AppendUint32(b, e.id)
	}
	return b
}

const (
	aclUserObj = 0x01
	nobody     = 65534
	noID       = ^uint32(0)
)

// TestAccessLists: an access list may name the user of this process, as systemd's credentials do, and nobody else.
func TestAccessLists(t *testing.T) {
	const me = 1000
	owner, group, mask, other := entry{aclUserObj, 4, noID}, entry{aclGroupObj, 0, noID}, entry{aclMask, 4, noID}, entry{aclOther, 0, noID}
	tests := []struct {
		name    string
		entries []entry
		want    fs.FileMode
	}{
		{"this user", []entry{owner, {aclUser, 4, me}, group, mask, other}, 0o400},
		{"root", []entry{owner, {aclUser, 6, 0}, group, mask, other}, 0o400},
		{"another user", []entry{owner, {aclUser, 4, nobody}, group, mask, other}, 0o404},
		{"this and another user", []entry{owner, {aclUser, 4, me}, {aclUser, 4, nobody}, group, mask, other}, 0o404},
		{"another user, masked", []entry{owner, {aclUser, 2, nobody}, group, mask, other}, 0o400},
		{"the group", []entry{owner, {aclUser, 4, me}, {aclGroupObj, 4, noID}, mask, other}, 0o440},
		{"a group", []entry{owner, {aclUser, 4, me}, group, {aclGroup, 4, me}, mask, other}, 0o404},
		{"others", []entry{owner, {aclUser, 4, me}, group, mask, {aclOther, 4, noID}}, 0o404},
		{"no mask", []entry{owner, {aclGroupObj, 7, noID}, other}, 0o470},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := modeOf(list(tt.entries...)[aclHeader:], 0o440, me); got != tt.want {
				t.Errorf("got %o, want %o", got, tt.want)
			}
		})
	}
}

// TestCredential: ReadKeys takes a file of the form that systemd passes, and refuses it if it is for another user too.
func TestCredential(t *testing.T) {
	owner, mask, other := entry{aclUserObj, 4, noID}, entry{aclMask, 4, noID}, entry{aclOther, 0, noID}
	group, me := entry{aclGroupObj, 0, noID}, entry{aclUser, 4, uint32(os.Geteuid())}
	name := write(t, credentialsFile, text(1), 0o400)
	set := func(entries ...entry) {
		t.Helper()
		err := unix.Setxattr(name, aclName, list(entries...), 0)
		if errors.Is(err, unix.ENOTSUP) {
			t.Skip("the file system of the temporary directory has no access lists")
		}
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(name); err != nil || info.Mode() != 0o440 {
			t.Fatalf("mode %v, %v, want 0440", info.Mode(), err)
		}
	}
	set(owner, me, group, mask, other)
	if _, err := ReadKeys(name); err != nil {
		t.Error(err)
	}
	set(owner, entry{aclUser, 4, nobody}, group, mask, other)
	if _, err := ReadKeys(name); err == nil && os.Geteuid() != nobody {
		t.Error("another user may read the key")
	}
}
