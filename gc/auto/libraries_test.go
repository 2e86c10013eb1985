package auto

import (
	"slices"
	"testing"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pressure"
)

// TestLibrariesAreCountedApart: what libraries count is theirs by name, the gauge has the rest, and
// both keep the same room below the limit.
func TestLibrariesAreCountedApart(t *testing.T) {
	lib := pressure.NewCounter(t.Name())
	lib.Add(300 * mib)
	defer lib.Sub(300 * mib)
	s := newStage()
	s.anonymous.Store(500 * mib)
	s.golang.Store(100 * mib)
	s.container.Store(1000 * mib)
	w := begun(t, s)
	n := w.collector.Counters()
	if i := slices.IndexFunc(n, func(c gc.Counted) bool { return c.Name == t.Name() }); i < 0 || n[i].Live != 300*mib {
		t.Errorf("counted %v", n)
	}
	if got := w.gauge.Look(); got != 100*mib {
		t.Errorf("the gauge reads %d MiB, want 100", got/mib)
	}
	const room = 950 - 500 // of what is usable
	for _, m := range w.collector.Snapshot().Sources {
		if m.Headroom() != room*mib {
			t.Errorf("%d MiB live of %d, want a headroom of %d", m.Live/mib, m.Limit/mib, room)
		}
	}
	if n := len(w.collector.Snapshot().Sources); n != 2 {
		t.Errorf("%d sources, want the libraries and the rest", n)
	}
}
