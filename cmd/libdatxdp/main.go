// Command libdatxdp is a uDAPL 2.0 provider library. With it, C programs that use libdat2 run over AF_XDP or UDP
// without changes. Build it with
//
//	make provider
//
// The build needs cgo and the headers of libdapl-dev. It produces bin/libdatxdp.so. Without the build tag datprovider
// this package is an empty program. docs/UDAPL.md says how to install and use the library.
//
// libdat2 calls the functions of entry_*.c, the entries, through a table. An entry checks handles, converts arguments
// that Go cannot express, such as unions and va_list, and calls a function of export*.go. That function only calls
// package dat, which implements all rules of DAT.
//
// Threading: as in package dat, any thread may call any entry. A post or a dequeue takes no lock and searches no map
// before it calls package dat.
package main

func main() {}
