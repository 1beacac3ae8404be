package dat

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
)

// The static registry: a file of adapters that the administrator writes.
const (
	registryVar  = "DAT_OVERRIDE" // names another file
	registryFile = "/etc/dat.conf"
	// maxRegistry bounds the file in bytes: a thousand adapters take a tenth of it.
	maxRegistry = 1 << 20
	// library is what the names of this provider's shared library begin with.
	library = "libdatxdp"
)

// ProviderInfo names a provider of an adapter (DAT_PROVIDER_INFO).
type ProviderInfo struct {
	Name         string // of the adapter, for Open
	Major, Minor uint32 // version of the API
	ThreadSafe   bool
}

// A provider was added by a program.
type provider struct {
	info  ProviderInfo
	open  func(string, Options) (*IA, error)
	opens int // guarded by providersMu
}

var (
	providersMu sync.Mutex
	providers   []*provider
)

// Providers lists what the registry has, then what was added (dat_registry_list_providers). The registry
// is the file /etc/dat.conf, or the one that the environment variable DAT_OVERRIDE names; it is empty
// where there is none. Lines that are wrong are left out and named in the error, ErrInternalError, beside
// which the list is valid.
func Providers() ([]ProviderInfo, error) {
	entries, err := readRegistry()
	var list []ProviderInfo
	for _, e := range entries {
		list = append(list, e.ProviderInfo)
	}
	providersMu.Lock()
	defer providersMu.Unlock()
	for _, p := range providers {
		list = append(list, p.info)
	}
	return list, err
}

// AddProvider makes open what opens adapters of a name (dat_registry_add_provider). It goes before an
// entry of the registry. open is called with the name and returns an IA of its own each time.
// ErrProviderAlreadyRegistered if the name was added; ErrInvalidParameter if there is no name, one of
// MaxName bytes, or nothing to call.
func AddProvider(info ProviderInfo, open func(name string, o Options) (*IA, error)) error {
	if info.Name == "" || len(info.Name) >= MaxName || open == nil {
		return fail(ErrInvalidParameter, "a provider needs a name of 1 to %d bytes and a function", MaxName-1)
	}
	providersMu.Lock()
	defer providersMu.Unlock()
	if slices.ContainsFunc(providers, func(p *provider) bool { return p.info.Name == info.Name }) {
		return fail(ErrProviderAlreadyRegistered, "%s", info.Name)
	}
	providers = append(providers, &provider{info: info, open: open})
	return nil
}

// RemoveProvider undoes AddProvider (dat_registry_remove_provider). ErrInvalidParameter if the same was not
// added, ErrProviderInUse while an IA that it opened is open.
func RemoveProvider(info ProviderInfo) error {
	providersMu.Lock()
	defer providersMu.Unlock()
	i := slices.IndexFunc(providers, func(p *provider) bool { return p.info == info })
	switch {
	case i < 0:
		return fail(ErrInvalidParameter, "no provider %+v was added", info)
	case providers[i].opens > 0:
		return fail(ErrProviderInUse, "%s has %d open adapters; close them", info.Name, providers[i].opens)
	}
	providers = slices.Delete(providers, i, i+1)
	return nil
}

// registered is the added provider of a name, counted as in use; nil if there is none.
func registered(name string) *provider {
	providersMu.Lock()
	defer providersMu.Unlock()
	for _, p := range providers {
		if p.info.Name == name {
			p.opens++
			return p
		}
	}
	return nil
}

// openIA opens an adapter that keeps p in use until it is closed.
func (p *provider) openIA(o Options) (*IA, error) {
	ia, err := p.open(p.info.Name, o)
	if err == nil && ia == nil {
		err = fail(ErrInternalError, "the provider of %s returned no adapter", p.info.Name)
	}
	if err == nil {
		err = ia.keep(p)
	}
	if err != nil {
		p.drop()
		return nil, err
	}
	return ia, nil
}

// keep has the IA drop p when it is closed.
func (ia *IA) keep(p *provider) error {
	if err := ia.lock(); err != nil {
		return err
	}
	defer ia.mu.Unlock()
	ia.providers = append(ia.providers, p)
	return nil
}

func (p *provider) drop() {
	providersMu.Lock()
	defer providersMu.Unlock()
	p.opens--
}

// configured is the device that a name stands for: that of its entry in the registry, else the name.
func configured(name string) (string, error) {
	entries, err := readRegistry()
	var refusal error
	for _, e := range entries {
		if e.Name != name {
			continue
		}
		if refusal = e.refuse(); refusal == nil {
			return e.instance, nil
		}
	}
	if refusal == nil && err != nil && !strings.Contains(name, ":") {
		refusal = errors.Join(fail(errName, "adapter name %q", name), err)
	}
	return name, refusal
}

// entry is a line of the registry.
type entry struct {
	ProviderInfo
	standard bool   // the one for who asks for no name
	library  string // that has the provider
	version  string // of the provider
	instance string // instance data: for us, what Open opens
	platform string
}

// refuse says why this package cannot open an entry.
func (e *entry) refuse() error {
	switch {
	case !strings.HasPrefix(path.Base(e.library), library):
		return fail(errName, "adapter %s belongs to %s, which Go cannot load", e.Name, e.library)
	case e.Major != apiMajor:
		return fail(with(ErrProviderNotFound, SubMajorNotFound), "adapter %s is for version %d.%d of the API; this is %d.%d", e.Name, e.Major, e.Minor, apiMajor, apiMinor)
	default:
		return nil
	}
}

// readRegistry reads the file; none is an empty registry.
func readRegistry() ([]entry, error) {
	name := os.Getenv(registryVar)
	if name == "" {
		name = registryFile
	}
	text, err := readRegular(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("dat: %w: reading the registry: %w", ErrInternalError, err)
	}
	entries, err := parseRegistry(text)
	if err != nil {
		return entries, fmt.Errorf("dat: %w: %s: %w", ErrInternalError, name, err)
	}
	return entries, nil
}

// readRegular reads a regular file of bounded size.
func readRegular(name string) (string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxRegistry {
		return "", fmt.Errorf("%s is no file of at most %d bytes", name, maxRegistry)
	}
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxRegistry))
	return string(text), err
}
