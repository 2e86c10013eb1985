package pool

import (
	"testing"

	"github.com/eagergc/eagergc/pressure"
)

// TestWhatACycleFreesIsServedAgain frees thousands of blocks of some sizes in
// another goroutine, as a cycle does: they are there for the next allocations,
// most without the core's lock, and as one piece for a block that needs it.
func TestWhatACycleFreesIsServedAgain(t *testing.T) {
	const limit = 1 << 30
	p := newPool(t, Config{Limits: pressure.Limits{Hard: pressure.Limit{Bytes: limit}}})
	sizes := []int64{512, 4096, 8192, 4096}
	fill := func() (all []Block) {
		for i := range 10_000 {
			b, err := p.Alloc(sizes[i%len(sizes)], 0)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, b)
		}
		return all
	}
	free := func(all []Block) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			for _, b := range all {
				p.Free(b)
			}
		}()
		<-done
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
	}
	free(fill())
	before := p.Stats()
	if before.FreeBlocks < 1000 || before.Largest < 4096 {
		t.Errorf("cached: %d pieces, the largest of %d bytes", before.FreeBlocks, before.Largest)
	}
	again := fill()
	after := p.Stats()
	if missed := after.Allocs - before.Allocs - (after.Hits - before.Hits); missed > 10_000/4 {
		t.Errorf("%d of 10,000 allocations came from the core", missed)
	}
	if after.Reserved != before.Reserved {
		t.Errorf("reserved went from %d to %d", before.Reserved, after.Reserved)
	}
	free(again)
	large, err := p.Alloc(limit-8<<20, 0)
	if err != nil {
		t.Errorf("what was freed does not make room: %v", err)
	}
	if got := p.Stats(); got.Refusals != 0 || got.Reserved > limit {
		t.Errorf("%d refusals, %d bytes reserved", got.Refusals, got.Reserved)
	}
	p.Free(large)
	if err := p.Check(); err != nil {
		t.Error(err)
	}
}

// TestADepotKeepsSizesApart: two sizes of one slot never serve each other.
func TestADepotKeepsSizesApart(t *testing.T) {
	const size = 4096
	other := int64(size + 512)
	for slotOf(other, 0) != slotOf(size, 0) {
		other += 512
	}
	p := newPool(t, Config{})
	hs, d := &p.core.headers, new(depot)
	chain := hs.new()
	hs.at(chain).size = size
	if !d.put(hs, chain) {
		t.Fatal("an empty depot takes no magazine")
	}
	if got := d.take(hs, other, 0); got != 0 {
		t.Errorf("a request of %d bytes got pieces of %d", other, size)
	}
	if got := d.take(hs, size, 1); got != 0 {
		t.Error("a request of stream 1 got pieces of stream 0")
	}
	if got := d.take(hs, size, 0); got != chain {
		t.Errorf("got %d, want the magazine %d", got, chain)
	}
	hs.drop(chain)
}
