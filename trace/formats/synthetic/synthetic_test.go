package synthetic_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace/formats/synthetic"
)

func TestPrograms(t *testing.T) {
	for _, shape := range synthetic.Shapes() {
		for seed := range uint64(8) {
			a, err := synthetic.Open(shape, seed)
			if err != nil {
				t.Fatal(err)
			}
			w, err := sim.Compile(a, sim.SpaceOf(a))
			if err != nil {
				t.Fatal(err)
			}
			if w.Allocs < 2000 || w.Allocs > 50_000 || w.Span < 100*time.Millisecond || w.Span > 10*time.Minute ||
				w.AllocatedBytes < 4*w.PeakReachable {
				t.Errorf("%s: %d allocations of %d MiB, peak reachable %d MiB, in %v", a.Name, w.Allocs, w.AllocatedBytes>>20, w.PeakReachable>>20, w.Span)
			}
			if seed > 0 {
				continue
			}
			again, _ := synthetic.Open(shape, seed)
			other, _ := synthetic.Open(shape, 99)
			if !reflect.DeepEqual(a, again) || reflect.DeepEqual(a.Events, other.Events) {
				t.Errorf("%s is not what its seed says", a.Name)
			}
		}
	}
	if _, err := synthetic.Open("pear", 1); err == nil {
		t.Error("a shape that is not there")
	}
}
