package pool_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
)

// A slowUpstream takes its time to give back.
type slowUpstream struct {
	pool.Host
	slow atomic.Bool
}

func (u *slowUpstream) Release(addr uintptr, bytes int64, stream uint32) error {
	if u.slow.Load() {
		time.Sleep(250 * time.Millisecond) // longer than a cycle waits for a release that does not get on
	}
	return u.Host.Release(addr, bytes, stream)
}

// Memory that a cycle has found dead is room, even if giving it back takes longer
// than a cycle waits for a release. A busy machine makes any release that slow.
func TestNothingFailsWhileReleasesAreUnderWay(t *testing.T) {
	const block = 1 << 20
	up := new(slowUpstream)
	p := open(t, pool.Config{Upstream: up, Direct: true, Limits: pressure.Limits{Hard: pressure.Limit{Bytes: block}}})
	drop(t, p, block)
	up.slow.Store(true)
	defer up.slow.Store(false)
	a, err := array.New[byte](p, block)
	if err != nil {
		t.Fatal(err)
	}
	runtime.KeepAlive(a)
}

// drop makes an array that is garbage when it returns.
//
//go:noinline
func drop(t *testing.T, p *pool.Pool, n int) {
	if _, err := array.New[byte](p, n); err != nil {
		t.Fatal(err)
	}
}
