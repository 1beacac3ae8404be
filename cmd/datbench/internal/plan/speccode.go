package plan

import (
	"encoding/binary"
	"hash/crc32"
	"reflect"
)

// peerFields are the fields of a spec that the other end needs: all but those tagged peer:"-".
var peerFields = fieldsFor(reflect.TypeFor[Spec]())

func fieldsFor(t reflect.Type) (out []reflect.StructField) {
	for _, f := range reflect.VisibleFields(t) {
		if !f.Anonymous && f.Tag.Get("peer") != "-" {
			out = append(out, f)
		}
	}
	return out
}

// fingerprint differs between versions of datbench whose specs have different fields.
var fingerprint = fingerprintOf(peerFields)

func fingerprintOf(fields []reflect.StructField) uint32 {
	text := ""
	for _, f := range fields {
		text += f.Name + " " + f.Type.Kind().String() + "\n"
	}
	return crc32.ChecksumIEEE([]byte(text))
}

// AppendTo adds the spec as the other end needs it: the fingerprint, then the fields in their order. A string has its
// length in a byte before it, a number takes eight bytes, a boolean one.
func (r Spec) AppendTo(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, fingerprint)
	v := reflect.ValueOf(r)
	for _, f := range peerFields {
		switch field := v.FieldByIndex(f.Index); field.Kind() {
		case reflect.String:
			b = append(b, byte(field.Len()))
			b = append(b, field.String()...)
		case reflect.Bool:
			b = append(b, bit(field.Bool()))
		default:
			b = binary.BigEndian.AppendUint64(b, uint64(field.Int()))
		}
	}
	return b
}

// ParseSpec reads what AppendTo wrote, and returns what follows it. The bytes may come from anybody: a spec that
// exceeds a limit is an error.
func ParseSpec(b []byte) (r Spec, rest []byte, err error) {
	in := reader{b: b}
	if in.uint(4) != uint64(fingerprint) {
		return r, nil, ErrSpec
	}
	v := reflect.ValueOf(&r).Elem()
	for _, f := range peerFields {
		switch field := v.FieldByIndex(f.Index); field.Kind() {
		case reflect.String:
			field.SetString(string(in.take(int(in.uint(1)))))
		case reflect.Bool:
			field.SetBool(in.uint(1) != 0)
		default:
			field.SetInt(int64(in.uint(8)))
		}
	}
	if in.short {
		return Spec{}, nil, ErrSpec
	}
	return r, in.b, r.check()
}

// reader takes pieces of a buffer. After one that is not there in full, short is set and all others are empty.
type reader struct {
	b     []byte
	short bool
}

func (in *reader) take(n int) []byte {
	if in.short || n > len(in.b) {
		in.short = true
		return nil
	}
	piece := in.b[:n]
	in.b = in.b[n:]
	return piece
}

// uint is the next n bytes as a number, the first byte the highest.
func (in *reader) uint(n int) (v uint64) {
	for _, c := range in.take(n) {
		v = v<<8 | uint64(c)
	}
	return v
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}
