package cuda

import (
	"strings"
	"testing"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
)

// The environment chooses the memory, where the program does not. No GPU is needed
// to choose.
func TestMemoryOfTheEnvironment(t *testing.T) {
	d := &Device{index: 3}
	for _, c := range []struct {
		env  string
		kind Kind
		want pressure.Space
	}{
		{"", "", pressure.Device(3)}, {"device", "", pressure.Device(3)}, {"managed", "", pressure.Managed},
		{"pinned", "", pressure.Pinned}, {"managed", KindDevice, pressure.Device(3)}, {"", KindPinned, pressure.Pinned},
	} {
		t.Setenv(EnvMemory, c.env)
		if _, space, err := d.Upstream(c.kind); err != nil || space != c.want {
			t.Errorf("%q with %q: %v, %v", c.env, c.kind, space, err)
		}
	}
	t.Setenv(EnvMemory, "unified")
	if _, _, err := d.Upstream(""); err == nil || !strings.Contains(err.Error(), EnvMemory) {
		t.Errorf("a kind that there is not: %v", err)
	}
}

func TestPoolOfTheEnvironment(t *testing.T) {
	d := &Device{}
	cfg := pool.Config{Upstream: pool.Host{}}
	for env, cached := range map[string]bool{"": true, "none": false} {
		t.Setenv(EnvPool, env)
		p := must[*pool.Pool](t)(d.NewPool(cfg))
		b := must[pool.Block](t)(p.Alloc(1000, 0))
		p.Free(b)
		if s := p.Stats(); (s.Reserved > 0) != cached {
			t.Errorf("%q: %d bytes are cached", env, s.Reserved)
		}
		p.Close()
	}
	t.Setenv(EnvPool, "all")
	if _, err := d.NewPool(cfg); err == nil || !strings.Contains(err.Error(), EnvPool) {
		t.Errorf("a pool that there is not: %v", err)
	}
}
