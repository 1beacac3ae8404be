package result

import "slices"

// Class is what an operation of datbench moves.
type Class uint8

// The classes of operations.
const (
	ClassFrames Class = iota // frames of AF_XDP without a protocol
	ClassDAT                 // an operation of package dat
	ClassStream              // a net.Conn of package stream
	ClassTCP                 // kernel TCP
)

// Operations, as in the JSON.
const (
	Raw       = "raw"
	RawAsavie = "raw_asavie"
	Send      = "send"
	Write     = "write"
	Read      = "read"
	Stream    = "stream"
	TCP       = "tcp"
	TCPShared = "tcp_shared"
	TCPSpin   = "tcp_spin"
)

// Operation is what a row measures.
type Operation struct {
	Name  string // in the JSON, in flags and in tables
	Title string // in charts
	Style string // short title, and CSS class of the page
	Class Class
	Note  string // explains the rows below a table; may be empty
}

// Operations is the only list of operations, in the order of tables and legends. Flags, their help, tables, charts, notes
// and the check of bounds derive from it.
var Operations = []Operation{
	{Raw, "raw AF_XDP", "raw", ClassFrames, ""},
	{RawAsavie, "raw, asavie/xdp", "asavie", ClassFrames, ""},
	{Send, "send", "send", ClassDAT, ""},
	{Write, "RDMA write", "write", ClassDAT, ""},
	{Read, "RDMA read", "read", ClassDAT, ""},
	{Stream, "stream", "stream", ClassStream, "stream is a net.Conn of package stream, used as tcp is."},
	{TCP, "kernel TCP", "tcp", ClassTCP, ""},
	{TCPShared, "kernel TCP beside XDP", "shared", ClassTCP, "tcp_shared is tcp while an adapter is open at both ends, in the mode shown:\n" +
		"what an attached XDP program costs the other traffic of an interface."},
	{TCPSpin, "kernel TCP, spinning", "spin", ClassTCP, "tcp_spin is tcp whose ends read in a loop and do not block."},
}

// OperationNames returns the names of the operations of the classes, or of all classes if there is none.
func OperationNames(classes ...Class) (names []string) {
	for _, o := range Operations {
		if len(classes) == 0 || slices.Contains(classes, o.Class) {
			names = append(names, o.Name)
		}
	}
	return names
}

// Rank returns the position of an operation in Operations; -1 if it is unknown.
func Rank(op string) int {
	return slices.IndexFunc(Operations, func(o Operation) bool { return o.Name == op })
}

// isOf reports whether the row's operation belongs to one of the classes.
func (r Row) isOf(classes ...Class) bool { return slices.Contains(OperationNames(classes...), r.Op) }

// DAT reports whether the row measures an operation of package dat.
func (r Row) DAT() bool { return r.isOf(ClassDAT) }

// Frames reports whether the row measures frames, whose size follows from the MTU.
func (r Row) Frames() bool { return r.isOf(ClassFrames) }

// Baseline reports whether the row measures raw frames or kernel TCP, with which DAT operations are compared.
func (r Row) Baseline() bool { return r.isOf(ClassFrames, ClassTCP) }
