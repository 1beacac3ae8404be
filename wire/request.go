package wire

import (
	"container/list"
	"net/netip"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// requestKey identifies a connection attempt, so that a repeated Connect finds its Request.
type requestKey struct {
	from     netip.AddrPort
	cid, tag uint32
	// connect is 0 in plaintext mode. In secure mode it is the hash of the Connect until a job has read its message 1, and
	// then the hash of the requester's identity: whoever is on the path can send a Connect of its own in the attempt.
	connect uint64
}

// Request is a received connection request. Its exported fields do not change, except User.
type Request struct {
	From    netip.AddrPort // address and port at which the requester receives
	To      netip.Addr     // address of this host to which the requester has sent; the answer has to leave from it
	Qual    uint64
	Port    uint64 // the requester's port qualifier
	Private []byte // private data of the requester; the service owns it
	// ReadIn bounds the RDMA reads that the requester serves at a time. ReadOut bounds those that it has outstanding.
	ReadIn, ReadOut int
	parties
	// User belongs to the service; the engine does not read it.
	User any

	eng     *Engine
	service Service // service that got the request
	requestKeys
	connect   *connect         // the Connect; nil once the request is accepted or rejected
	conn      *Conn            // connection that accepted the request; nil while undecided
	open      bool             // no longer counted as half-open
	places    [3]*list.Element // in the lists of unconfirmed, in the order of Request.lists
	gone      bool             // rejected, forgotten or handed off
	rejection *rejection       // the Reject; nil unless the request is rejected
	authentication
}

// parties are the two ends of a request in secure mode.
type parties struct {
	// PeerKey is the public key of the requester. It is 0 if the requester has proven that it knows a shared secret, and in
	// plaintext mode. PeerName is its name, as the Answerer gives it.
	PeerKey  [32]byte
	PeerName string
	// OwnKey is the public key of this host that the requester expects. It is 0 if PeerKey is.
	OwnKey [32]byte
}

// requestKeys are the keys of a request in the table.
type requestKeys struct {
	key     requestKey
	aliases []requestKey // secure mode: keys with the hashes of its Connects
}

// authentication is what secure mode knows of a requester.
type authentication struct {
	sealed *sealedRequest // the handshake; nil in plaintext mode
	permit *permit        // nil in plaintext mode, and once a connection or nobody has it
}

// connect is the Connect packet of an unanswered request, without the private data.
type connect struct {
	header    proto.Header
	hello     proto.Hello
	arrivedAt Time
}

// rejection is the Reject packet of a rejected request. It is kept so that a repeated Connect gets the same Reject.
type rejection struct {
	path link.Path
	psn  seq.Num // PSN of the Connect
	body proto.Hello
	at   Time         // when Reject last left
	sent *fixedPacket // secure mode: the Reject with message 2; nil until it is made
}

// Engine returns the engine on which the request has to be answered.
func (r *Request) Engine() *Engine { return r.eng }
