// Package examples has five programs; each is a directory to copy and to start from. They take --ia for the adapter, and
// end cleanly on ^C. The servers of echo, table and push share package examples/places.
//
//	echo      one message at a time: adapter, endpoint, connection, sends and receives
//	reqresp   requests of many goroutines, with packages message and stream
//	kv        a key-value store of requests, with packages message and stream
//	table     a table in a server's memory: RDMA read, RDMA write, atomics, and their guarantees
//	push      a file to many hosts at once: RDMA writes with immediate data, flow control, progress
//
// The tests are in this directory. They run over UDP between loopback addresses and, as root, over AF_XDP between two
// namespaces.
package examples
