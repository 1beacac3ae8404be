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

// feedCounts counts the streams that feed a dispatcher, by their completion flags.
type feedCounts struct {
	completions int // streams of completions, of receives or of requests
	unsignalled int // the part of completions with CompletionUnsignalled
	solicited   int // the part of completions with CompletionSolicitedWait
}

func (f *feedCounts) count(s feed, n int) {
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

// mayShareEVD reports whether the streams that feed a dispatcher may share it. numStreams is the number of these
// streams, including the streams of connection events and of connection requests. The streams may share the dispatcher
// in three cases:
//
//   - All streams are completions with CompletionUnsignalled.
//   - All streams are completions of receives with CompletionSolicitedWait.
//   - No stream has one of these two flags. CompletionDefault and CompletionEVDThreshold are equivalent.
func (f *feedCounts) mayShareEVD(numStreams int) bool {
	return f.solicited == numStreams || f.unsignalled == numStreams || f.solicited+f.unsignalled == 0
}

func (f *feedCounts) config() EVDState {
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

// replaceFeeds changes the event streams that an endpoint or a service point sends to dispatchers. The argument
// oldFeeds has the old streams; it is nil for a new object. The argument newFeeds has the new streams; it is nil for a
// freed object. For a freed object, replaceFeeds cannot fail.
//
// Errors: ErrInvalidHandle (a dispatcher is freed), ErrInvalidParameter (after the change, one dispatcher would have
// streams that may not share it, see mayShareEVD). After an error, nothing has changed.
func (a *adapter) replaceFeeds(oldFeeds, newFeeds []feed) error {
	a.feedMu.Lock()
	defer a.feedMu.Unlock()
	for _, f := range newFeeds {
		if f.evd != nil && f.evd.usable() != nil {
			return ErrInvalidHandle
		}
	}
	addToFeedCounts(oldFeeds, -1)
	addToFeedCounts(newFeeds, 1)
	for _, f := range newFeeds {
		if e := f.evd; e != nil && !e.feedCounts.mayShareEVD(int(e.refs.n.Load())) {
			addToFeedCounts(newFeeds, -1)
			addToFeedCounts(oldFeeds, 1)
			return fail(ErrInvalidParameter, "the completion flags are not compatible with those of other streams of the event dispatcher; use another dispatcher")
		}
	}
	configure(oldFeeds)
	configure(newFeeds)
	return nil
}

// addRequestFeed adds the connection requests of a service point to the event streams that feed e, and takes a
// reference in e.refs. When the service point ends, the caller drops this reference.
func (e *EVD) addRequestFeed() error { return e.ia.a.replaceFeeds(nil, []feed{{evd: e}}) }

// addToFeedCounts adds n to the counters of the dispatcher of each stream. The caller passes 1 for added streams and
// -1 for removed streams.
func addToFeedCounts(streams []feed, n int) {
	for _, f := range streams {
		if f.evd != nil {
			f.evd.refs.n.Add(int32(n))
			f.evd.feedCounts.count(f, n)
		}
	}
}

// configure stores the new configuration of each stream's dispatcher. Wait and Query read it without a lock.
func configure(streams []feed) {
	for _, f := range streams {
		if f.evd != nil {
			f.evd.config.Store(uint32(f.evd.feedCounts.config()))
		}
	}
}

// checkFeed returns ErrInvalidHandle if e cannot accept the given stream of events (one of the EVDFlags) from an object
// of ia. A nil e accepts every stream.
func (e *EVD) checkFeed(ia *IA, stream EVDFlags) error {
	if e == nil {
		return nil
	}
	if e.usable() != nil || e.ia.a != ia.a || e.flags&stream == 0 {
		return ErrInvalidHandle
	}
	return nil
}
