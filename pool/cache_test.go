package pool

import (
	"testing"

	"github.com/eagergc/eagergc/pressure"
)

// A cache that is full of a large piece, as a cycle leaves them behind, still
// serves small ones.
func TestLargePiecesLeaveAFrontToSmallOnes(t *testing.T) {
	p, err := New(Config{Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 64 << 20}}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	cycle := func(bytes int64) {
		b, err := p.Alloc(bytes, 0)
		if err != nil {
			t.Fatal(err)
		}
		p.Free(b)
	}
	cycle(p.caches[0].keep)
	before := p.Stats().Hits
	for range 1000 {
		cycle(4096)
	}
	if hits := p.Stats().Hits - before; hits < 900 {
		t.Errorf("%d of 1000 small allocations were served by the cache", hits)
	}
}
