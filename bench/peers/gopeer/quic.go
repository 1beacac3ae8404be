package gopeer

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"time"

	"github.com/quic-go/quic-go"
)

// protocol is the protocol name that TLS requires (ALPN).
const protocol = "datxdp-peers"

// window is the number of bytes that a receiver accepts before they are read. The default maximum of 6 MiB limits a
// stream of 1 MiB messages.
const window = 16 << 20

func quicConfig() *quic.Config {
	return &quic.Config{
		InitialStreamReceiveWindow: window, MaxStreamReceiveWindow: window,
		InitialConnectionReceiveWindow: window, MaxConnectionReceiveWindow: window,
	}
}

// certificate returns a self-signed certificate for this process.
func certificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().AddDate(1, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

func serveQUIC(ctx context.Context, e End, ready func()) error {
	if err := e.kernelOnly(); err != nil {
		return err
	}
	cert, err := certificate()
	if err != nil {
		return err
	}
	l, err := quic.ListenAddr(e.Addr, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{protocol}}, quicConfig())
	if err != nil {
		return err
	}
	defer l.Close()
	ready()
	for {
		conn, err := l.Accept(ctx)
		if err != nil {
			return err
		}
		go func() {
			stream, err := conn.AcceptStream(ctx)
			if err == nil {
				_ = serveBytes(stream) // the client reports the error
			}
		}()
	}
}

func runQUIC(ctx context.Context, e End, a Ask) (tally, error) {
	if err := e.kernelOnly(); err != nil {
		return tally{}, err
	}
	// The certificate is not verified, because the benchmark does not depend on the server's identity.
	conn, err := quic.DialAddr(ctx, e.Addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}, quicConfig())
	if err != nil {
		return tally{}, err
	}
	defer func() { _ = conn.CloseWithError(0, "done") }() // everything has been answered
	stream, err := conn.OpenStreamSync(ctx)
	if err != nil {
		return tally{}, err
	}
	defer context.AfterFunc(ctx, func() { _ = stream.SetDeadline(time.Unix(1, 0)) })()
	return runBytes(stream, a)
}
