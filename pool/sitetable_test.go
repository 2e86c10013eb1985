package pool

import "testing"

// More stacks than the pool keeps are one site: nothing is lost, and memory is
// bounded.
func TestManySites(t *testing.T) {
	var s sites
	s.init(1)
	const more = 1000
	var last uint32
	for n := range sitesMax + more {
		at := stack{uintptr(n + 1)}
		last = s.number(&at)
		s.at(last).alloc.add(s.weigh(512))
		if again := s.number(&stack{uintptr(n + 1)}); again != last {
			t.Fatalf("stack %d is site %d and %d", n, last, again)
		}
	}
	x := s.at(last)
	if len(s.all) != sitesMax || x.text() != "(too many sites)" || x.alloc.bytes.Load() != 512*(more+2) {
		t.Errorf("%d sites, the last %q with %d bytes", len(s.all), x.text(), x.alloc.bytes.Load())
	}
}
