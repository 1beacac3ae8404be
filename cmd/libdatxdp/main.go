// Command libdatxdp is datxdp as a uDAPL 2.0 provider library. C programs that use libdat2 run over AF_XDP or UDP
// without changes. Build it with
//
//	make provider
//
// The build needs cgo and the headers of libdapl-dev; it produces bin/libdatxdp.so. Without the build tag datprovider
// this package is an empty program. docs/UDAPL.md says how to install and use it.
//
// libdat2 calls the entries of entry_*.c through a table. The entries check handles and convert arguments that Go
// cannot express, such as unions and va_list. They call export*.go, which only calls package dat. All rules of DAT are
// implemented there.
//
// Threading: as in package dat, any thread may call any entry. A post or a dequeue takes no lock and searches no map
// before it reaches package dat.
package main

func main() {}
