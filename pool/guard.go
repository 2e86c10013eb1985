package pool

import (
	"reflect"

	"github.com/eagergc/eagergc/pool/internal/guard"
	"github.com/eagergc/eagergc/pressure"
)

func (p *Pool) upstreamAllocate(bytes int64, stream uint32) (uintptr, error) {
	return guard.Value(func() (uintptr, error) { return p.cfg.Upstream.Allocate(bytes, stream) })
}

func (p *Pool) upstreamRelease(s span) error {
	err := guard.Error(func() error { return p.cfg.Upstream.Release(s.addr, s.bytes, s.stream) })
	if err == nil && p.cacher != nil { // it keeps the memory for now
		p.setUpstreamCached(func(cached int64) int64 { return cached + s.bytes })
	}
	return err
}

func (p *Pool) upstreamInfo() (pressure.Info, error) { return guard.Value(p.cfg.Upstream.Info) }

// isPointer reports whether v is a pointer, which tells one upstream from another.
func isPointer(v any) bool { return reflect.TypeOf(v).Kind() == reflect.Pointer }

// addressable reports whether the processor can address the memory of a pool.
func addressable(cfg Config) bool {
	_, device := cfg.Space.Device()
	return !device
}
