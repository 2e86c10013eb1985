package pool

import (
	"fmt"
	"reflect"
	"runtime/debug"

	"github.com/eagergc/eagergc/pressure"
)

// guarded calls code that is not the pool's. It turns a panic into an error, so
// the pool stays usable.
func guarded[T any](f func() (T, error)) (v T, err error) {
	defer func() {
		if e := recover(); e != nil {
			err = fmt.Errorf("pool: contained panic: %v\n%s", e, debug.Stack())
		}
	}()
	return f()
}

func guard(f func() error) error {
	_, err := guarded(func() (struct{}, error) { return struct{}{}, f() })
	return err
}

func (p *Pool) upstreamAllocate(bytes int64, stream uint32) (uintptr, error) {
	return guarded(func() (uintptr, error) { return p.cfg.Upstream.Allocate(bytes, stream) })
}

func (p *Pool) upstreamRelease(s span) error {
	err := guard(func() error { return p.cfg.Upstream.Release(s.addr, s.bytes, s.stream) })
	if err == nil && p.cacher != nil { // it keeps the memory for now
		p.setUpstreamCached(func(cached int64) int64 { return cached + s.bytes })
	}
	return err
}

func (p *Pool) upstreamInfo() (pressure.Info, error) { return guarded(p.cfg.Upstream.Info) }

// isPointer reports whether v is a pointer, which tells one upstream from another.
func isPointer(v any) bool { return reflect.TypeOf(v).Kind() == reflect.Pointer }
