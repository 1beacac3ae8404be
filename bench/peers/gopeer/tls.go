package gopeer

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"time"
)

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

// serverConfig returns the configuration of a TLS 1.3 server with a new certificate.
func serverConfig() (*tls.Config, error) {
	cert, err := certificate()
	return &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{protocol}, MinVersion: tls.VersionTLS13}, err
}

// clientConfig returns the configuration of a TLS 1.3 client. The certificate is not verified, because the benchmark
// does not depend on the server's identity.
func clientConfig() *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}, MinVersion: tls.VersionTLS13}
}

func serveTLS(ctx context.Context, e End, ready func()) error {
	cfg, err := serverConfig()
	if err != nil {
		return err
	}
	l, err := e.listen(ctx)
	if err != nil {
		return err
	}
	return serveListener(ctx, tls.NewListener(l, cfg), ready)
}

func runTLS(ctx context.Context, e End, a Ask) (tally, error) {
	conn, err := e.dial(ctx)
	if err != nil {
		return tally{}, err
	}
	return runConn(ctx, tls.Client(conn, clientConfig()), a)
}

// TLSCipher returns the name of the cipher suite that TLS 1.3 chooses between two ends on this host. Go prefers AES-GCM
// if both CPUs have instructions for it.
func TLSCipher() (string, error) {
	cfg, err := serverConfig()
	if err != nil {
		return "", err
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	go func() { _ = tls.Server(a, cfg).Handshake() }() // the client reports the error
	client := tls.Client(b, clientConfig())
	if err := client.Handshake(); err != nil {
		return "", err
	}
	return tls.CipherSuiteName(client.ConnectionState().CipherSuite), nil
}
