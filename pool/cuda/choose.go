package cuda

import (
	"fmt"
	"os"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
)

// Variables of the environment that [Device.NewPool] reads.
const (
	EnvMemory = "EAGERGC_DEFAULT_MEMORY" // device, managed or pinned
	EnvPool   = "EAGERGC_MEMORY_POOL"    // none: the pool caches nothing
)

// A Kind is a kind of memory that a device can use.
type Kind string

const (
	KindDevice  Kind = "device"
	KindManaged Kind = "managed"
	KindPinned  Kind = "pinned"
)

// Upstream returns the memory of a kind and its space. The empty kind is that of
// [EnvMemory], and device memory if that is not set. It fails for any other kind.
func (d *Device) Upstream(kind Kind) (pool.Upstream, pressure.Space, error) {
	named := fmt.Sprintf("kind of memory %q", kind)
	if kind == "" {
		kind = Kind(os.Getenv(EnvMemory))
		named = fmt.Sprintf("%s=%q", EnvMemory, kind)
	}
	switch kind {
	case KindDevice, "":
		return d.Memory(), d.Space(), nil
	case KindManaged:
		return d.Managed(), pressure.Managed, nil
	case KindPinned:
		return d.Pinned(), pressure.Pinned, nil
	}
	return nil, 0, fmt.Errorf("cuda: %s: want device, managed or pinned", named)
}

// NewPool returns a pool of the device's memory. The environment says what cfg does
// not: the kind of memory ([EnvMemory]) if cfg has no Upstream, and whether the
// pool caches ([EnvPool]). It fails as [Device.Upstream] and [pool.New] do.
func (d *Device) NewPool(cfg pool.Config) (*pool.Pool, error) {
	if cfg.Upstream == nil {
		var err error
		if cfg.Upstream, cfg.Space, err = d.Upstream(""); err != nil {
			return nil, err
		}
	}
	switch choice := os.Getenv(EnvPool); choice {
	case "none":
		cfg.Direct = true
	case "":
	default:
		return nil, fmt.Errorf("cuda: %s=%q: want none, or nothing", EnvPool, choice)
	}
	return pool.New(cfg)
}
