package dat

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/datxdp/datxdp/dat/internal/worker"
	"github.com/datxdp/datxdp/internal/handshake"
	"github.com/datxdp/datxdp/internal/identity"
	"github.com/datxdp/datxdp/wire"
)

// Security says whether an adapter is in secure mode, and with which keys (docs/SECURITY.md). In secure mode, every
// connection is authenticated and encrypted; an adapter in plaintext mode cannot connect to one in secure mode. An adapter
// with a key is in secure mode. The files are read when the adapter is opened, and again when they change
// (IA.ReloadSecurity).
type Security struct {
	// KeyFile is the file with the private keys of this host, which "datbench keygen" makes. If it is empty, the file
	// datxdp.key in $CREDENTIALS_DIRECTORY is used or, if there is none, the text in DATXDP_KEY. Without any key the adapter
	// is in plaintext mode. The option "key=FILE" in a name overrides KeyFile.
	KeyFile string
	// PeersFile has a line for each host that may connect to this one, with its public key and its rights. If PeersFile is
	// empty, nobody may connect, and this host can still connect to others. The option "peers=FILE" in a name overrides
	// PeersFile.
	PeersFile string
	// KnownFile selects trust on first use, as SSH does with StrictHostKeyChecking=accept-new: a server that is connected by
	// its address alone, and that no line of PeersFile has, is asked for its key (it answers if it has Announce). KnownFile
	// has the addresses and keys of such servers; a missing file is made. A server whose key differs from that in the file is
	// refused. Whoever is on the path at the first connection can take the place of the server, then and later. The option
	// "known=FILE" in a name overrides KnownFile. KnownFile may be shared by adapters and programs.
	KnownFile string
	// Announce tells the public key of this host, the first of KeyFile, to everybody who asks for it. The option "announce" in
	// a name does the same.
	Announce bool
	// Insecure selects plaintext mode although the environment has a key. It excludes the fields above. The option "insecure" in a
	// name does the same.
	Insecure bool
}

// PublicKey is the public key of a host in secure mode. The zero PublicKey stands for none.
type PublicKey [32]byte

// String returns the key in base64, as it is written in a file of peers, or "" for none.
func (k PublicKey) String() string {
	if k == (PublicKey{}) {
		return ""
	}
	return identity.Text(handshake.PublicKey(k))
}

// MarshalText returns String.
func (k PublicKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// short returns the beginning of the key for a table, or "-" for none.
func (k PublicKey) short() string {
	if s := k.String(); s != "" {
		return s[:8]
	}
	return "-"
}

// ParsePublicKey parses the text of a public key: what String returns and "datbench keygen" prints. The error is
// ErrInvalidParameter.
func ParsePublicKey(text string) (PublicKey, error) {
	k, err := identity.ParsePublic(text)
	if err != nil {
		return PublicKey{}, fail(ErrInvalidParameter, "%q is not a public key: %v", identity.Redact(text), err)
	}
	return PublicKey(k), nil
}

// security is the state of an adapter in secure mode.
type security struct {
	options Security // of the first open
	store   *identity.Store
	known   *identity.Known // nil: no trust on first use
	worker  *worker.Worker
	keyLog  *identity.KeyLog // nil: none
	log     *slog.Logger     // of the first open; it limits the number of lines, and does not wait
	warn    *slog.Logger     // of the first open, or slog.Default
	now     func() time.Time

	reloading sync.Mutex    // held while the files are read again
	ended     chan struct{} // stop closes it; watchSecurity then returns
	watched   chan struct{} // watchSecurity closes it when it returns
}

// openSecurity reads the keys and the peers, opens the key log, and starts the worker. It returns nil for plaintext mode.
func openSecurity(options *Options) (*security, error) {
	o, log := options.Security, options.warner()
	if o.Insecure {
		if o.chosen() {
			return nil, fail(ErrInvalidParameter, "insecure with a file of keys or peers: choose one of them")
		}
		if source := new(identity.Files).Source(); source != "" {
			log.Warn("dat: plaintext mode because of insecure, although there is a key", "key", source)
		}
		return nil, nil
	}
	store, err := identity.Open(o.files())
	switch {
	case errors.Is(err, identity.ErrNoKey) && !o.chosen():
		if _, set := os.LookupEnv(identity.KeyVariable); set {
			log.Warn("dat: plaintext mode, because the variable with the key is empty", "variable", identity.KeyVariable)
		}
		return nil, nil
	case err != nil:
		return nil, filesError(err)
	}
	s := &security{options: o, store: store, log: options.detachedLogger(), warn: log, now: time.Now,
		ended: make(chan struct{}), watched: make(chan struct{})}
	if err := s.open(); err != nil {
		store.Close()
		return nil, err
	}
	s.worker = worker.New()
	return s, nil
}

// files returns the files that the options name.
func (o Security) files() identity.Files {
	return identity.Files{Key: o.KeyFile, Peers: o.PeersFile, Known: o.KnownFile}
}

// chosen reports whether the options ask for secure mode.
func (o Security) chosen() bool { return o.files() != identity.Files{} || o.Announce }

// open checks the processor, and opens the file of known servers and the key log.
func (s *security) open() (err error) {
	if err := identity.CheckProcessor(); err != nil {
		return fail(ErrModelNotSupported, "%v", err)
	}
	if s.options.KnownFile != "" {
		if s.known, err = identity.OpenKnown(s.options.KnownFile); err != nil {
			return filesError(err)
		}
	}
	s.keyLog, err = openKeyLog(s.options, s.warn)
	return err
}

// filesError returns the DAT error for files of keys and peers that cannot be read.
func filesError(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fail(ErrPrivilegesViolation, "%v", err)
	}
	return fail(ErrInvalidParameter, "%v", err)
}

// openKeyLog opens the key log, and warns that there is one. It returns nil if there is none.
func openKeyLog(o Security, log *slog.Logger) (*identity.KeyLog, error) {
	k, err := identity.OpenKeyLog(o.files(), func(err error) { log.Warn("dat: the key log is incomplete", "error", err) })
	if err != nil {
		return nil, fail(ErrInvalidParameter, "%v", err)
	}
	if k != nil {
		log.Warn("dat: DATXDP_KEYLOG is set: whoever has the file can decrypt all connections of this adapter", "file", k.Name())
	}
	return k, nil
}

// secure puts a host into secure mode. s may be nil.
func (s *security) secure(h *wire.Host) {
	if s == nil {
		return
	}
	w := wire.Security{Responder: s, Runner: s.worker}
	if s.keyLog != nil {
		w.KeyLog = s.keyLog
	}
	if s.options.Announce {
		w.ServerKey = func() *[32]byte { return s.store.Current().Announced() }
	}
	h.Secure(w)
}

// stop ends the watch of the files and the worker. The engines must not be closed yet, and their links must be open. s
// may be nil.
func (s *security) stop() {
	if s != nil {
		close(s.ended)
		<-s.watched
		s.worker.Close()
	}
}

// abandon ends the worker, and forgets, of an adapter that does not open. s may be nil.
func (s *security) abandon() {
	if s != nil {
		s.worker.Close()
		s.forget()
	}
}

// forget drops the shared secrets, and closes the key log. s may be nil.
func (s *security) forget() {
	if s != nil {
		s.store.Close()
		_ = s.keyLog.Close() // Write has reported what could not be written
	}
}

// allows returns an error if an open with options o must not share the adapter, which is in another mode or has other
// keys. An open without these options shares any adapter. s may be nil.
func (s *security) allows(o Security) error {
	open := Security{Insecure: true}
	if s != nil {
		open = s.options
	}
	if o == (Security{}) || o == open {
		return nil
	}
	return fail(ErrInvalidParameter, "the adapter is open already in %s mode, or with other files: use the same key=, peers= and insecure", s.mode())
}

// mode returns a word for logs. s may be nil.
func (s *security) mode() string {
	if s != nil {
		return "secure"
	}
	return "plaintext"
}
