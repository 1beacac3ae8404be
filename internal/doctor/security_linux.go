package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/datxdp/datxdp/internal/identity"
)

// checkSecurity says whether an adapter would be in secure mode: with which keys, for which peers, and whether it would
// write a key log. It reads what an adapter reads: the files in the name, and the environment of this process.
//
// System calls: those of opening and reading the files. Nothing is made or changed.
func checkSecurity(_ context.Context, x *exam) []Finding {
	files, source := x.files, x.files.Source()
	named := files != identity.Files{} || x.announce
	switch {
	case x.insecure && named:
		return failure("the name has insecure, and a file of keys or peers", "The adapter does not open, because one contradicts the other.",
			"choose one of them", "")
	case x.insecure && source != "":
		return warning("plaintext mode, although there is a key: "+source, "Packets are neither encrypted nor authenticated, because of the option insecure.",
			"leave out insecure", "")
	case x.insecure, source == "" && !named:
		return info("plaintext mode, since no key is named: packets are neither encrypted nor authenticated; docs/SECURITY.md, Secure mode")
	}
	store, err := identity.Open(files)
	if err != nil {
		fix := "do what this says, or choose plaintext mode in a trusted network: insecure"
		if named {
			fix = "do what this says, or choose plaintext mode in a trusted network: insecure in place of key=, peers=, known= and announce"
		}
		return failure(err.Error(), "The adapter does not open.", fix, "")
	}
	defer store.Close()
	x.secure = true
	found := secureFindings(store.Current(), source, identity.CheckProcessor(), files.Peers)
	found = append(found, trustFindings(files.Known, x.announce)...)
	return append(found, keyLogFindings(identity.KeyLogFile(), identity.CheckKeyLog(files))...)
}

// secureFindings describes an adapter in secure mode with the given keys and peers.
func secureFindings(set *identity.Set, source string, processor error, peersFile string) []Finding {
	if processor != nil {
		return failure(processor.Error(), "The adapter does not open.", "use another host, or plaintext mode in a trusted network: insecure", "")
	}
	var keys []string
	for _, k := range set.Keys.Public() {
		keys = append(keys, identity.Text(k))
	}
	public := "public key " + keys[0]
	if len(keys) > 1 {
		public += ", with which it connects; it accepts " + strings.Join(keys[1:], " and ") + " too"
	}
	found := ok("secure mode: %s in %s, which is not open to others; %s; the processor has AES instructions",
		plural(len(keys), "private key"), source, public)
	if source == identity.KeyVariable {
		found = warning(fmt.Sprintf("secure mode: %s in %s; %s", plural(len(keys), "private key"), source, public),
			"The variable is for tests: every process that this one starts gets the key.", "use a key file: key=FILE", "")
	}
	if peersFile == "" {
		found = append(found, info("no file of peers: nobody may connect to this host; it can connect to others")...)
	} else {
		found = append(found, ok("%s in %s", plural(len(set.Policy.Peers()), "peer"), peersFile)...)
		found = append(found, expiryFindings(set.Policy.Peers(), peersFile, time.Now())...)
	}
	return found
}

// soon is the time before the end of a line at which the doctor warns, so that there is time to renew it.
const soon = 14 * 24 * time.Hour

// expiryFindings names the lines of the file of peers whose time is over, or will be soon.
func expiryFindings(peers []*identity.Peer, file string, now time.Time) (found []Finding) {
	var over, ending []string
	for _, p := range peers {
		end := p.Expires()
		text := fmt.Sprintf("%v in line %d, on %s", p, p.Line(), end.UTC().Format(time.DateOnly))
		switch {
		case end.IsZero() || end.Sub(now) > soon:
		case end.After(now):
			ending = append(ending, text)
		default:
			over = append(over, text)
		}
	}
	const fix = "write a later expires= into the lines, or remove them"
	if len(over) > 0 {
		found = warning(fmt.Sprintf("%s in %s expired: %s", plural(len(over), "peer"), file, some(over)), "They may not connect.", fix, "")
	}
	if len(ending) > 0 {
		found = append(found, warning(fmt.Sprintf("%s in %s will expire in the next 14 days: %s", plural(len(ending), "peer"), file, some(ending)),
			"Then they may not connect any more, and their connections end.", fix, "")...)
	}
	return found
}

// some joins texts, of which it leaves out those after the fifth.
func some(texts []string) string {
	const most = 5
	if left := len(texts) - most; left > 0 {
		texts = append(texts[:most:most], fmt.Sprintf("and %d more", left))
	}
	return strings.Join(texts, "; ")
}

// trustFindings describes trust on first use: the file of known servers, and whether this host tells its key.
func trustFindings(file string, announce bool) (found []Finding) {
	if file != "" {
		n, err := identity.CountKnown(file)
		if err != nil {
			return failure(err.Error(), "The adapter does not open.", "do what this says", "")
		}
		found = info("trust on first use: %s in %s; another server is trusted when it is connected for the first time, unless the file of peers has its address",
			plural(n, "known server"), file)
	}
	if announce {
		found = append(found, info("everybody who asks is told the public key of this host (announce)")...)
	}
	return found
}

// keyLogFindings describes the key log. err says why it is refused.
func keyLogFindings(file string, err error) []Finding {
	switch {
	case file == "":
		return nil
	case err != nil:
		return failure(err.Error(), "The adapter does not open.", "mend the file, or unset DATXDP_KEYLOG", "")
	}
	return warning("DATXDP_KEYLOG is set: the secrets of all connections go to "+file,
		"Whoever reads this file can decrypt the connections, and forge packets of them.", "unset DATXDP_KEYLOG unless you look for a fault", "")
}
