// Package examples has four programs over DAT, each a directory to copy and begin with. They use package
// dat, take --ia for the adapter, and end in order on ^C. The servers share package examples/places.
//
//	echo      one message at a time: adapter, endpoint, connection, sends and receives
//	reqresp   many requests outstanding from many clients: credits, and a shared receive queue
//	kv        a table in a server's memory: RDMA read, RDMA write, atomics, and what they guarantee
//	push      a file to many hosts at once: RDMA writes with immediate data, flow control, progress
//
// Their tests are here: over UDP between addresses of loopback, and as root over AF_XDP between two
// namespaces.
package examples
