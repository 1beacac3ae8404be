package dat

// feed is one event stream of an object.
type feed struct {
	to    *EVD // nil discards the events
	kind  feedKind
	flags CompletionFlags // completion flags of the endpoint for this stream
}

// feedKind is the kind of a stream, as far as completion flags distinguish it.
type feedKind uint8

const (
	feedOther feedKind = iota // connection events, connection requests
	feedRecv
	feedRequest
)

// feedings counts the streams that feed a dispatcher, by their completion flags.
type feedings struct {
	completions int // streams of receives and of requests
	unsignalled int // streams with CompletionUnsignalled, included in completions
	solicited   int // streams with CompletionSolicitedWait, included in completions
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

// compatible reports whether the streams that feed a dispatcher may share it. all is their number. CompletionDefault
// is equivalent to CompletionEVDThreshold.
//
//   - If one stream is unsignalled, all must be completions of endpoints with CompletionUnsignalled.
//   - If one stream is solicited, all must be receives with CompletionSolicitedWait.
func (f *feedings) compatible(all int) bool {
	return f.solicited == all || f.unsignalled == all || f.solicited+f.unsignalled == 0
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

// refeed replaces the streams of an object: it drops those in removed and adds those in added. If it fails, it has
// changed nothing. removed is nil for a new object. added is nil for an object that is freed; refeed cannot fail
// then. Errors: ErrInvalidHandle if a dispatcher was freed, ErrInvalidParameter if the streams of a dispatcher would
// not be compatible.
func (a *adapter) refeed(removed, added []feed) error {
	a.feeding.Lock()
	defer a.feeding.Unlock()
	for _, f := range added {
		if f.to != nil && f.to.usable() != nil {
			return ErrInvalidHandle
		}
	}
	count(removed, -1)
	count(added, 1)
	for _, f := range added {
		if e := f.to; e != nil && !e.feeding.compatible(int(e.refs.n.Load())) {
			count(added, -1)
			count(removed, 1)
			return fail(ErrInvalidParameter, "completion flags do not go with those of other streams of the event dispatcher; use another dispatcher")
		}
	}
	configure(removed)
	configure(added)
	return nil
}

// serve makes e accept the connection requests of a service point. The caller drops the reference in e.refs at the
// end.
func (e *EVD) serve() error { return e.ia.a.refeed(nil, []feed{{to: e}}) }

// count adds n to the counts of each stream.
func count(streams []feed, n int) {
	for _, f := range streams {
		if f.to != nil {
			f.to.refs.n.Add(int32(n))
			f.to.feeding.count(f, n)
		}
	}
}

// configure publishes the configuration of the dispatchers to goroutines in Wait and Query, which take no lock.
func configure(streams []feed) {
	for _, f := range streams {
		if f.to != nil {
			f.to.config.Store(uint32(f.to.feeding.config()))
		}
	}
}

// feeds returns ErrInvalidHandle if e cannot accept a stream of an object of ia. A nil e accepts every stream.
func (e *EVD) feeds(ia *IA, stream EVDFlags) error {
	if e == nil {
		return nil
	}
	if e.usable() != nil || e.ia.a != ia.a || e.flags&stream == 0 {
		return ErrInvalidHandle
	}
	return nil
}
