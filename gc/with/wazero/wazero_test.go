package wazero_test

import (
	"bytes"
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/eagergc/eagergc/gc"
	with "github.com/eagergc/eagergc/gc/with/wazero"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
)

// plugin has one memory of 1 to 64 pages of 64 KiB, which it exports as "m".
var plugin = []byte{
	0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00,
	5, 4, 1, 1, 1, 64,
	7, 5, 1, 1, 'm', 2, 0,
}

const page = 64 << 10

type host struct {
	pool  *pool.Pool
	ctx   context.Context
	cache wazero.CompilationCache
}

func newHost(t *testing.T, limit int64) *host {
	t.Helper()
	c, err := gc.New(gc.Config{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := pool.New(pool.Config{Collector: c, Limits: pressure.Limits{Hard: pressure.Limit{Bytes: limit}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(); c.Close() })
	return &host{p, experimental.WithMemoryAllocator(context.Background(), with.New(p)), wazero.NewCompilationCache()}
}

func (h *host) instantiate(t *testing.T) (wazero.Runtime, api.Module) {
	t.Helper()
	r := wazero.NewRuntimeWithConfig(h.ctx, wazero.NewRuntimeConfig().WithCompilationCache(h.cache))
	m, err := r.Instantiate(h.ctx, plugin)
	if err != nil {
		t.Fatal(err)
	}
	return r, m
}

// A memory keeps what was written when it grows, and what is new is zero.
func TestMemoryGrows(t *testing.T) {
	h := newHost(t, 64<<20)
	r, module := h.instantiate(t)
	m := module.Memory()
	for pages := uint32(1); pages < 64; pages++ {
		at := pages*page - 1
		if b, ok := m.ReadByte(at); !ok || b != 0 {
			t.Fatalf("byte %d is %d, %v before it was written", at, b, ok)
		}
		m.WriteByte(at, byte(pages))
		if before, ok := m.Grow(1); !ok || before != pages {
			t.Fatalf("grow at %d pages: %d, %v", pages, before, ok)
		}
	}
	for pages := uint32(1); pages < 64; pages++ {
		if b, _ := m.ReadByte(pages*page - 1); b != byte(pages) {
			t.Errorf("page %d has %d", pages, b)
		}
	}
	if _, ok := m.Grow(1); ok {
		t.Error("the memory grows above its maximum")
	}
	if live := h.pool.Sample().Live; live < 64*page {
		t.Errorf("the pool counts %d bytes", live)
	}
	if err := r.Close(h.ctx); err != nil {
		t.Fatal(err)
	}
	if live := h.pool.Sample().Live; live != 0 {
		t.Errorf("%d bytes are live after Close", live)
	}
}

// A shared memory grows where it is.
func TestSharedMemoryGrows(t *testing.T) {
	h := newHost(t, 64<<20)
	shared := bytes.Clone(plugin)
	shared[11] = 3 // of the limits
	r := wazero.NewRuntimeWithConfig(h.ctx, wazero.NewRuntimeConfig().WithCoreFeatures(api.CoreFeaturesV2|experimental.CoreFeaturesThreads).WithMemoryCapacityFromMax(true))
	defer r.Close(h.ctx)
	module, err := r.Instantiate(h.ctx, shared)
	if err != nil {
		t.Fatal(err)
	}
	if before, ok := module.Memory().Grow(63); !ok || before != 1 {
		t.Errorf("grow at %d pages: %v", before, ok)
	}
}

// Modules that nobody closes stay under the pool's limit.
func TestForgottenModulesGoBack(t *testing.T) {
	h := newHost(t, 8<<20)
	for range 300 { // 19 MiB in all
		h.instantiate(t)
	}
	for end := time.Now().Add(20 * time.Second); h.pool.Sample().Live > 0; runtime.GC() {
		if time.Now().After(end) {
			t.Fatalf("%d bytes are live", h.pool.Sample().Live)
		}
		time.Sleep(time.Millisecond)
	}
}

// Where the pool is full of modules in use, a memory does not grow.
func TestGrowFailsAtTheLimit(t *testing.T) {
	h := newHost(t, 1<<20)
	_, module := h.instantiate(t)
	if _, ok := module.Memory().Grow(63); ok {
		t.Error("4 MiB under a limit of 1 MiB")
	}
	if b, ok := module.Memory().ReadByte(page - 1); !ok || b != 0 {
		t.Error("a failed grow has lost the memory")
	}
	runtime.KeepAlive(module)
}
