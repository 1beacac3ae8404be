// Package tap has links that wrap other links. Impaired drops, duplicates, reorders and corrupts received packets.
// Capture writes packets to a pcapng file. A link that is not wrapped has no additional cost.
//
// Ordering: Capture keeps the order. Impaired duplicates and reorders as configured, and never splits a packet of
// several frames. Ownership: as in the link below. Impaired frees the frames of packets that it drops. It may keep some
// frames, so its Caps.RxFrames is lower. Threading: as in link.Link. To capture what the protocol receives, wrap
// Impaired in Capture.
package tap
