package lease

import "time"

// Sizes of the protocol. docs/SHARING.md has them; a change is a new Version.
const (
	maxMessage   = 1024 // bytes of the largest message
	maxInterface = 16   // bytes of the name of an interface, IFNAMSIZ
	maxAttach    = 16   // bytes of the mode that the kernel granted
	maxText      = 382  // bytes of the text of an error
	maxAddresses = 16   // addresses of an interface in a Grant
	maxPorts     = 64   // source ports of a lease
	maxSockets   = 64   // sockets of a lease; with the UMEMs half of what one message carries (SCM_MAX_FD is 253)
	listPage     = 16   // leases in one answer to List
)

// Bounds of a Request. The daemon's locked memory is charged to nobody else, so it is the policy that limits memory.
const (
	minFrames, maxFrames = 256, 1 << 20
	minRing, maxRing     = 64, 1 << 15 // slots
	maxMemory            = 1 << 32     // bytes of the consumers' memory
	maxEngines           = 64          // a host has 256 engine numbers
)

// Defaults of a Request: those of package xdp for one queue.
const (
	defaultFrames    = 4096
	defaultFrameSize = 4096
	defaultRx        = 2048
	defaultTx        = 1024
	defaultEngines   = 1
	defaultPorts     = 16
)

// Defaults of a rule of a policy.
const (
	defaultLeases = 64      // for each user: an MPI job with a rank on each processor of a large host
	defaultBytes  = 4 << 30 // of locked memory for each user; 64 leases of 64 MiB
)

// Bounds of a Server.
const (
	maxConnections = 1024 // of all users; each is a descriptor and a goroutine
	// spareConnections is the number of connections that a user may have beyond the leases that the policy allows: for
	// calls without a lease, and for programs that are about to end.
	spareConnections = 8
	// requestRate and requestBurst are requests of a user, a second and at once. A lease takes 0.1 s of the kernel and
	// counts as leaseCost requests, so that a user can take 160 leases at once, and then 10 a second.
	requestRate, requestBurst = 500, 8000
	leaseCost                 = 50
	// idleLimit is the time in which a connection without a lease must send a request.
	idleLimit = 10 * time.Second
	// writeLimit is the time for which a full receive buffer of a client may hold up its answer. Only the goroutine of this
	// client waits.
	writeLimit = time.Second
	// leaseLimit bounds one call of the Kernel that makes a lease.
	leaseLimit = 10 * time.Second
	// sweepPeriod is the pause between two looks at leases whose holders have not come back since the daemon started.
	sweepPeriod = 5 * time.Second
	// maxLines is the number of refusals that are logged in a second. The metric counts all.
	maxLines = 10
	// acceptPause is the pause after a failed accept, as for lack of descriptors.
	acceptPause = 100 * time.Millisecond
)

// callLimit bounds a call of a Client. A lease may wait for the leases that other programs of the user ask for at the same
// time.
const callLimit = 30 * time.Second

// maxQuote is the number of bytes that an error quotes of a policy.
const maxQuote = 40

// restartLimit is the time for which a Client waits for a new daemon after the end of the old one; redialPause is the pause
// between two attempts. A restart takes less than a second.
const (
	restartLimit = 5 * time.Second
	redialPause  = 20 * time.Millisecond
)
