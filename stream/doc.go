// Package stream carries streams of bytes over DAT: a Conn is a net.Conn, and a Listener is a net.Listener. The package
// is new. Its API may change until a release lists it.
//
// This is a server that sends every byte back, and a client. The adapter is a name such as xdp:eth0 or udp:10.0.0.1; the
// address is that of the server's adapter, with the port that the server listens on:
//
//	func server(ctx context.Context, adapter string) error {
//		l, err := stream.Listen(ctx, adapter, 7000) // l is a net.Listener
//		if err != nil {
//			return err
//		}
//		defer context.AfterFunc(ctx, func() { _ = l.Close() })()
//		for {
//			c, err := l.Accept() // c is a net.Conn
//			if err != nil {
//				return err
//			}
//			go func() {
//				defer c.Close()
//				_, _ = io.Copy(c, c)
//			}()
//		}
//	}
//
//	func client(ctx context.Context, adapter, address string) (string, error) {
//		c, err := stream.Dial(ctx, adapter, address) // c is a net.Conn
//		if err != nil {
//			return "", err
//		}
//		defer c.Close()
//		if _, err := fmt.Fprintln(c, "hello"); err != nil {
//			return "", err
//		}
//		return bufio.NewReader(c).ReadString('\n')
//	}
//
// Ports are DAT connection qualifiers, and no TCP or UDP ports. Libraries that take a dial function, as net/http and
// gRPC do, get Dialer.DialContext. Errors are those of package net: errors.Is finds net.ErrClosed,
// os.ErrDeadlineExceeded, syscall.ECONNREFUSED and the like.
//
// # Recipes
//
// An HTTP client and server. The host of the URL is the address of the server's adapter, with the port of the listener:
//
//	d := stream.Dialer{Adapter: "udp:10.0.0.2"}
//	client := http.Client{Transport: &http.Transport{DialContext: d.DialContext}}
//	err := http.Serve(l, handler) // l is the Listener
//
// gRPC: the target has the scheme passthrough, so that gRPC does not resolve it.
//
//	conn, err := grpc.NewClient("passthrough:///10.0.0.1:7000", grpc.WithTransportCredentials(insecure.NewCredentials()),
//		grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) { return d.DialContext(ctx, "tcp", to) }))
//
// A pool: before a stream is used again, check that its peer has not closed it meanwhile, nor sent unexpected bytes. If
// idle returns false, close the stream and dial again. The check takes a millisecond, so make it only after a pause in which
// the peer may have closed the stream:
//
//	func idle(c net.Conn) bool {
//		_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
//		n, err := c.Read(make([]byte, 1))
//		return n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && c.SetReadDeadline(time.Time{}) == nil
//	}
//
// A message.Client of package message is a pool of its own for requests: any number of them share one stream.
//
// TLS: tls.Client(c, config) and tls.NewListener(l, config). Secure mode of the adapter needs neither.
//
// # Differences from package net
//
// A stream behaves as a TCP connection of package net, except for these differences, because its protocol runs in the
// process of the program:
//
//   - A program that ends must call Drain, if peers have not read what was written before Close.
//   - Close of a stream whose peer has sent unread bytes still delivers what was written. TCP resets the connection, and
//     can lose it.
//   - There is no file descriptor: SyscallConn and File are missing.
//   - net.Buffers makes a Write of each buffer, so the buffers of several goroutines can mix. TCP writes them at once.
//   - A Conn that nothing refers to any more stays open until Close. TCP closes such a connection.
//   - CloseRead discards bytes that have arrived and were not read. TCP lets them be read.
//   - Ports are those of the adapter. The network of addresses is tcp, because libraries expect it.
//
// # Flow of bytes
//
// Each end of a stream has a send ring and a receive ring of registered memory. Write copies bytes into the send ring,
// and the stream moves them into the receive ring of the peer with RDMA writes. The immediate data of an RDMA write
// tells the peer that bytes have arrived, and Read copies them out. The caller's memory is free when a call returns.
//
// The window is the number of bytes that the peer's receive ring has room for. When the peer's Read has freed room, a
// credit from the peer enlarges the window. The immediate data of the peer's writes carries the credit. If the peer
// writes nothing, the credit is a message without bytes.
//
// # Memory
//
// A receive ring begins with 2 KiB, and a send ring is allocated by the first Write. Rings grow to 1 MiB while the
// stream fills them. When no byte has moved for one to two seconds, they shrink to what they were. All rings of an
// adapter together grow by at most 256 MiB: those of one remote address by a quarter of what is free, so by 51 MiB at
// most, and those of one network (IPv4 /24, IPv6 /64) by half of what is free, so by 85 MiB at most. If a ring cannot
// grow, rings of addresses that use up their share shrink. An idle end takes about 12 KiB in all, and more if its
// adapter has several queues.
//
// Each stream has a protection zone of its own, so a peer can write only into the receive ring of its own stream. It can
// change bytes there until they are consumed. So a program that does not trust the peer must not check the bytes of Peek
// in place and use them afterwards: it copies them first. Read and WriteTo copy.
//
// # Batching
//
// A Write is sent at once while fewer than 8 messages wait for a credit. Further bytes are collected in the send ring
// until the next credit arrives (Nagle's algorithm, RFC 896, with 8 messages in place of one segment).
//
// # Progress
//
// No goroutine belongs to a Conn. A goroutine that blocks in Read or Write drives the adapter and handles the events of
// its connection. If bytes wait in the send ring while no goroutine blocks, its next event starts a goroutine
// that sends what may leave.
package stream
