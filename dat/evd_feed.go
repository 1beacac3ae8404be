package dat

// feed is one event stream from an object to a dispatcher.
type feed struct {
	evd   *EVD // nil: the events are discarded
	kind  feedKind
	flags CompletionFlags // the endpoint's attribute for this stream
}

// feedKind is the kind of a stream. Kinds to which completion flags do not apply are not distinguished.
type feedKind uint8

const (
	feedOther feedKind = iota // connection events, connection requests
	feedRecv
	feedRequest
)

// feedings counts the streams that feed a dispatcher, by their completion flags.
type feedings struct {
	completions int // streams of completions, of receives or of requests
	unsignalled int // the part of completions with CompletionUnsignalled
	solicited   int // the part of completions with CompletionSolicitedWait
}

func (f *feedings) count(s feed, n int) {
	if s.kind == feedOther {
		return
	}
	f.completions += n
	switch s.flags {
	case CompletionUnsignalled:
		f.unsignalled += n
	case CompletionSolicitedWait:
		f.solicited += n
	default:
	}
}

// The method compatible reports whether the streams that feed a dispatcher may share the dispatcher. The argument total
// is the number of these streams, including the streams of connection events and of connection requests. The streams
// are compatible in three cases:
//
//   - All streams are completions with CompletionUnsignalled.
//   - All streams are completions of receives with CompletionSolicitedWait.
//   - No stream has one of these two flags. CompletionDefault and CompletionEVDThreshold are equivalent.
func (f *feedings) compatible(total int) bool {
	return f.solicited == total || f.unsignalled == total || f.solicited+f.unsignalled == 0
}

func (f *feedings) config() EVDState {
	switch {
	case f.solicited > 0:
		return EVDStateConfigSolicited
	case f.unsignalled > 0:
		return EVDStateConfigNotify
	default:
		return EVDStateConfigThreshold
	}
}

// feeds returns the streams of an endpoint.
func feeds(recv, request, connect *EVD, a *EPAttr) []feed {
	return []feed{{recv, feedRecv, a.RecvCompletionFlags}, {request, feedRequest, a.RequestCompletionFlags},
		{connect, feedOther, 0}}
}

// The method refeed changes the event streams that an endpoint or a service point sends to dispatchers. The argument
// removed has the old streams, and is nil for a new object. The argument added has the new streams, and is nil for a
// freed object. For a freed object, refeed cannot fail.
//
// Errors: ErrInvalidHandle (a dispatcher is freed), ErrInvalidParameter (after the change, one dispatcher would have
// streams that are not compatible, see feedings.compatible). After an error, nothing has changed.
func (a *adapter) refeed(removed, added []feed) error {
	a.feeding.Lock()
	defer a.feeding.Unlock()
	for _, f := range added {
		if f.evd != nil && f.evd.usable() != nil {
			return ErrInvalidHandle
		}
	}
	count(removed, -1)
	count(added, 1)
	for _, f := range added {
		if e := f.evd; e != nil && !e.feeding.compatible(int(e.refs.n.Load())) {
			count(added, -1)
			count(removed, 1)
			return fail(ErrInvalidParameter, "the completion flags are not compatible with those of other streams of the event dispatcher; use another dispatcher")
		}
	}
	configure(removed)
	configure(added)
	return nil
}

// The method serve adds the connection requests of a service point to the streams of e, and takes a reference in
// e.refs. When the service point ends, the caller drops this reference.
func (e *EVD) serve() error { return e.ia.a.refeed(nil, []feed{{evd: e}}) }

// The function count adds n to the counters of the dispatcher of each stream. The caller passes 1 for added streams and
// -1 for removed streams.
func count(streams []feed, n int) {
	for _, f := range streams {
		if f.evd != nil {
			f.evd.refs.n.Add(int32(n))
			f.evd.feeding.count(f, n)
		}
	}
}

// configure stores the new configuration of each stream's dispatcher. Wait and Query read it without a lock.
func configure(streams []feed) {
	for _, f := range streams {
		if f.evd != nil {
			f.evd.config.Store(uint32(f.evd.feeding.config()))
		}
	}
}

// This method returns ErrInvalidHandle if e cannot accept the given kind of stream from an object of ia. A nil e
// accepts every stream.
func (e *EVD) feeds(ia *IA, stream EVDFlags) error {
	if e == nil {
		return nil
	}
	if e.usable() != nil || e.ia.a != ia.a || e.flags&stream == 0 {
		return ErrInvalidHandle
	}
	return nil
}
