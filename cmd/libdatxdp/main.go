// Command libdatxdp is datxdp as a uDAPL 2.0 provider library: programs written in C against libdat2
// run over AF_XDP or UDP as they are. It is built with
//
//	make provider
//
// which needs cgo and the headers of libdapl-dev, and makes bin/libdatxdp.so. Without the build tag
// datprovider this package is an empty program. docs/UDAPL.md says how to install and use it.
//
// libdat2 calls the entries of entry_*.c through a table. They check the handles, take apart what Go
// cannot express, and call export*.go, which does nothing but call package dat. What a call means, and
// every rule of DAT, is there.
//
// Threading is that of package dat: every entry may be called by any thread. There is no lock or map
// between a post or a dequeue and package dat.
package main

func main() {}
