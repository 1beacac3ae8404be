package libraries

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io"
	"net"

	"golang.org/x/crypto/ssh"
)

// sshSession has the channels of a connection.
type sshSession struct {
	ssh.Conn
	incoming <-chan ssh.NewChannel
}

// rekey is the number of bytes after which the ends agree on new keys, so that a test sees that.
const rekey = 256 << 10

func sshClient(c net.Conn) (session, error) {
	config := ssh.ClientConfig{User: "user", Auth: []ssh.AuthMethod{ssh.Password("secret")}, HostKeyCallback: ssh.InsecureIgnoreHostKey()}
	config.RekeyThreshold = rekey
	conn, incoming, requests, err := ssh.NewClientConn(c, "", &config)
	if err != nil {
		return nil, err
	}
	go ssh.DiscardRequests(requests)
	return sshSession{conn, incoming}, nil
}

func sshServer(c net.Conn) (session, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return nil, err
	}
	config := ssh.ServerConfig{PasswordCallback: func(_ ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
		if string(password) != "secret" {
			return nil, errors.New("wrong password")
		}
		return nil, nil
	}}
	config.RekeyThreshold = rekey
	config.AddHostKey(signer)
	conn, incoming, requests, err := ssh.NewServerConn(c, &config)
	if err != nil {
		return nil, err
	}
	go ssh.DiscardRequests(requests)
	return sshSession{conn, incoming}, nil
}

func (s sshSession) Open() (io.ReadWriteCloser, error) {
	ch, requests, err := s.OpenChannel("echo", nil)
	if err != nil {
		return nil, err
	}
	go ssh.DiscardRequests(requests)
	return ch, nil
}

func (s sshSession) Accept() (io.ReadWriteCloser, error) {
	one, ok := <-s.incoming
	if !ok {
		return nil, io.EOF
	}
	ch, requests, err := one.Accept()
	if err != nil {
		return nil, err
	}
	go ssh.DiscardRequests(requests)
	return ch, nil
}
