package plan

import (
	"encoding/binary"
	"hash/crc32"
	"reflect"
)

// peerFields are the fields of a spec that are sent to the other end: all but those tagged peer:"-".
var peerFields = fieldsFor(reflect.TypeFor[Spec]())

func fieldsFor(t reflect.Type) (out []reflect.StructField) {
	for _, f := range reflect.VisibleFields(t) {
		if !f.Anonymous && f.Tag.Get("peer") != "-" {
			out = append(out, f)
		}
	}
	return out
}

// fingerprint is a checksum over the fields of a spec. It differs between versions of datbench with different fields.
var fingerprint = fingerprintOf(peerFields)

func fingerprintOf(fields []reflect.StructField) uint32 {
	text := ""
	for _, f := range fields {
		text += f.Name + " " + f.Type.Kind().String() + "\n"
	}
	return crc32.ChecksumIEEE([]byte(text))
}

// AppendTo appends the encoded spec: the fingerprint, then the fields in order. A number takes eight bytes and a
// boolean takes one byte. A string begins with a byte that has the length of the string.
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

// ParseSpec decodes a spec that AppendTo has encoded. The result rest has the bytes after the encoded spec. The bytes
// may come from any host, so ParseSpec returns an error if the spec exceeds a limit.
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

// reader decodes a spec from a buffer. If the buffer ends too early, reader sets its flag short. From then on it
// returns zero or empty values.
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

// uint decodes the next n bytes as a big-endian number.
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
