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

// The static registry is a file in which the administrator lists adapters.
const (
	registryVar  = "DAT_OVERRIDE" // environment variable with another file name
	registryFile = "/etc/dat.conf"
	// maxRegistry is the maximum size of the file in bytes. A thousand adapters need a tenth of it.
	maxRegistry = 1 << 20
	// library is the prefix of the file names of this provider's shared library.
	library = "libdatxdp"
)

// ProviderInfo identifies a provider (DAT_PROVIDER_INFO).
type ProviderInfo struct {
	Name         string // name of the adapter, for Open
	Major, Minor uint32 // version of the uDAPL API
	ThreadSafe   bool
}

// provider is a provider that the program added with AddProvider.
type provider struct {
	info  ProviderInfo
	open  func(string, Options) (*IA, error)
	opens int // open IAs, and opens in progress; guarded by providersMu
}

var (
	providersMu sync.Mutex
	providers   []*provider
)

// Providers returns the entries of the registry, then the providers added with AddProvider
// (dat_registry_list_providers). The registry is the file that the environment variable DAT_OVERRIDE names or, if the
// variable is not set, /etc/dat.conf. A missing file is an empty registry. If lines of the file are invalid, Providers
// returns the valid entries and an ErrInternalError that names the invalid lines.
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

// AddProvider adds a provider (dat_registry_add_provider). Afterwards, a call of Open with the name info.Name calls
// opener, which must return a new IA each time. An added provider takes precedence over a registry entry with the same
// name.
//
// Errors: ErrProviderAlreadyRegistered if a provider with this name was added before; ErrInvalidParameter if the name
// is empty or has MaxName bytes or more, or if opener is nil.
func AddProvider(info ProviderInfo, opener func(name string, o Options) (*IA, error)) error {
	if info.Name == "" || len(info.Name) >= MaxName || opener == nil {
		return fail(ErrInvalidParameter, "a provider needs a name of 1 to %d bytes and a function", MaxName-1)
	}
	providersMu.Lock()
	defer providersMu.Unlock()
	if slices.ContainsFunc(providers, func(p *provider) bool { return p.info.Name == info.Name }) {
		return fail(ErrProviderAlreadyRegistered, "%s", info.Name)
	}
	providers = append(providers, &provider{info: info, open: opener})
	return nil
}

// RemoveProvider removes a provider that AddProvider added (dat_registry_remove_provider). Errors: ErrInvalidParameter
// if no provider with an identical info was added; ErrProviderInUse while an IA of the provider is open.
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

// findProvider returns the added provider with the given name, and counts one more open of that provider. It returns
// nil if there is no such provider.
func findProvider(name string) *provider {
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

// openIA calls the function of p to open an IA. The IA keeps p in use until the IA is closed.
func (p *provider) openIA(o Options) (*IA, error) {
	ia, err := p.open(p.info.Name, o)
	if err == nil && ia == nil {
		err = fail(ErrInternalError, "the provider of %s returned no adapter", p.info.Name)
	}
	if err == nil {
		err = ia.dropOnClose(p)
	}
	if err != nil {
		p.drop()
		return nil, err
	}
	return ia, nil
}

// dropOnClose makes the IA drop its reference to p when it is closed.
func (ia *IA) dropOnClose(p *provider) error {
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

// lookUp finds the description of a device by name. It returns the instance data of the registry entry with that name
// or, if the registry has no such entry, the name itself.
func lookUp(name string) (string, error) {
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
	standard bool   // whether the fourth field is "default"; not used
	library  string // file name of the shared library
	version  string // version of the provider
	instance string // instance data; for this provider the description of a device, such as xdp:eth0
	platform string // platform data
}

// refuse returns an error if this package cannot open the entry.
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

// readRegistry reads the registry file. A missing file is an empty registry.
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

// readRegular reads a regular file of at most maxRegistry bytes.
func readRegular(name string) (string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxRegistry {
		return "", fmt.Errorf("%s is not a regular file of at most %d bytes", name, maxRegistry)
	}
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxRegistry))
	return string(text), err
}
