package identity

import (
	"encoding/binary"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// The access list of a file as the kernel returns it (include/uapi/linux/posix_acl_xattr.h): a version, then entries
// with a tag, permissions and a user or group ID, in little-endian order.
const (
	aclName    = "system.posix_acl_access"
	aclVersion = 2
	aclHeader  = 4
	aclEntry   = 8
	aclMost    = 64 // entries that are looked at

	aclUser     = 0x02
	aclGroupObj = 0x04
	aclGroup    = 0x08
	aclMask     = 0x10
	aclOther    = 0x20
)

// granted returns the mode of a file with the permissions that its group and others really have. With an access list,
// the group bits of the mode are the union of what the list grants to anybody but the owner. systemd gives a credential
// to the user of a service in this way, so the mode is 0440 although the group may not read it. If the list cannot be
// read, the mode is what counts.
func granted(f *os.File, mode fs.FileMode) fs.FileMode {
	var b [aclHeader + aclMost*aclEntry]byte
	n, err := unix.Fgetxattr(int(f.Fd()), aclName, b[:])
	if err != nil || n < aclHeader || binary.LittleEndian.Uint32(b[:]) != aclVersion {
		return mode
	}
	return modeOf(b[aclHeader:n], mode, uint32(os.Geteuid()))
}

// modeOf returns the mode of a file with an access list. Entries of the user and of root count for nothing. Other users and
// groups in the list are others, because they are not the group of the file.
func modeOf(entries []byte, mode fs.FileMode, user uint32) fs.FileMode {
	var group, named, other uint16
	mask := ^uint16(0)
	for ; len(entries) >= aclEntry; entries = entries[aclEntry:] {
		tag, perm, id := binary.LittleEndian.Uint16(entries), binary.LittleEndian.Uint16(entries[2:]), binary.LittleEndian.Uint32(entries[4:])
		switch tag {
		case aclUser:
			if id != user && id != 0 {
				named |= perm
			}
		case aclGroupObj:
			group |= perm
		case aclGroup:
			named |= perm
		case aclMask:
			mask = perm
		case aclOther:
			other |= perm
		}
	}
	return mode&^access | fs.FileMode(group&mask&7)<<3 | fs.FileMode((named&mask|other)&7)
}
