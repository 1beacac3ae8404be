package dat

// feed is one stream of events of an object: where it goes and how its completions count.
type feed struct {
	to    *EVD // nil: the events are not wanted
	kind  feedKind
	flags CompletionFlags // completion flags of the endpoint's direction
}

// feedKind tells the streams apart that completion flags matter for.
type feedKind uint8

const (
	feedOther feedKind = iota // connection events, connection requests
	feedRecv
	feedRequest
)

// feedings counts the completions that feed a dispatcher, a stream at a time.
type feedings struct {
	completions int // of receives and of requests
	unsignalled int // those of them with CompletionUnsignalled
	solicited   int // receives with CompletionSolicitedWait
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

// compatible reports whether all streams may share a dispatcher. CompletionDefault counts as
// CompletionEVDThreshold: nothing tells them apart.
//
//   - With an unsignalled stream, all are completions of endpoints, and unsignalled.
//   - With a solicited stream, all are receives, and solicited.
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

// feeds are the streams of an endpoint.
func feeds(recv, request, connect *EVD, a *EPAttr) []feed {
	return []feed{{recv, feedRecv, a.RecvCompletionFlags}, {request, feedRequest, a.RequestCompletionFlags},
		{connect, feedOther, 0}}
}

// refeed makes an object, whose streams are old, feed others instead: all of them or, after an error,
// none. For a new object old is nil; for one that is freed instead is nil, and it does not fail.
// ErrInvalidHandle if a dispatcher is gone, ErrInvalidParameter if its streams would not be compatible.
func (a *adapter) refeed(old, instead []feed) error {
	a.feeding.Lock()
	defer a.feeding.Unlock()
	for _, f := range instead {
		if f.to != nil && f.to.usable() != nil {
			return ErrInvalidHandle
		}
	}
	count(old, -1)
	count(instead, 1)
	for _, f := range instead {
		if e := f.to; e != nil && !e.feeding.compatible(int(e.refs.n.Load())) {
			count(instead, -1)
			count(old, 1)
			return fail(ErrInvalidParameter, "completion flags do not go with those of other streams of the event dispatcher; use another dispatcher")
		}
	}
	configure(old)
	configure(instead)
	return nil
}

// count adds n to the number of each stream.
func count(streams []feed, n int) {
	for _, f := range streams {
		if f.to != nil {
			f.to.refs.n.Add(int32(n))
			f.to.feeding.count(f, n)
		}
	}
}

// configure has waiters see what feeds the dispatchers.
func configure(streams []feed) {
	for _, f := range streams {
		if f.to != nil {
			f.to.config.Store(uint32(f.to.feeding.config()))
		}
	}
}

// feeds checks that e, which may be nil, can take a stream for an object of ia.
func (e *EVD) feeds(ia *IA, stream EVDFlags) error {
	if e == nil {
		return nil
	}
	if e.usable() != nil || e.ia.a != ia.a || e.flags&stream == 0 {
		return ErrInvalidHandle
	}
	return nil
}
