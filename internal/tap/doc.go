// Package tap holds links over links: Impaired makes a good network bad on the receive side,
// Capture writes what passes to a pcapng file. A link that is not wrapped pays nothing.
//
// Ordering: Capture changes none; Impaired repeats and reorders as it is told to, and never cuts a
// packet of many frames apart. Ownership: as the link below says; Impaired frees what it drops and
// may keep some frames back, fewer by as many in Caps. Threading: as link.Link says. Wrap Impaired
// in Capture, not the other way round, to see in the file what the protocol sees.
package tap
