package link

// Grouper is implemented by a Link with Caps.Group.
//
// A link that wraps another link must forward the call.
type Grouper interface {
	// SendSingly makes packets of a path leave one by one, and not in groups. Only the owner may call it.
	SendSingly(Path)
}
