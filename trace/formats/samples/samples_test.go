package samples_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace/formats/samples"
)

// TestSamplesAreWhatTheyAreSaidToBe: the figures of the PyTorch programs are those of the recordings' README and golden results.
func TestSamplesAreWhatTheyAreSaidToBe(t *testing.T) {
	want := `mlp 22942 16, resnet 28244 402, gpt2 53763 250, vit 69075 190, gp 37734 2037, gnn 11274 608, burst 50642 862, rcnn 67009 3211,
ppo 124104 3508, serve 125156 1548, spectral 102029 80,
thumb 388 4, matrix 3600 4, wasm 400 4, arrow 400 4, query 1430 4,
array 334 332, dense 1093 1087, conv 2203 249, infer 1683 1680`
	var got []string
	for _, name := range samples.All() {
		tr, err := samples.Open(name)
		if err == nil {
			err = tr.Validate()
		}
		if err != nil {
			t.Fatal(name, err)
		}
		w, err := sim.Compile(tr, sim.SpaceOf(tr))
		if err != nil || tr.Name != name || samples.About(name) == "" {
			t.Errorf("%s is %q, %v", name, tr.Name, err)
		}
		got = append(got, fmt.Sprintf("%s %d %d", name, w.Allocs, w.Syncs))
	}
	if all := strings.Join(got, ", "); all != strings.ReplaceAll(want, "\n", " ") {
		t.Errorf("allocations and waits are\n%s\nwant\n%s", all, want)
	}
	if _, err := samples.Open("../samples"); err == nil || samples.About("pear") != "" {
		t.Error("an unknown name opens")
	}
}

func ExampleOpen() {
	t, err := samples.Open("mlp")
	if err != nil {
		panic(err)
	}
	w, err := sim.Compile(t, sim.SpaceOf(t))
	if err != nil {
		panic(err)
	}
	fmt.Println(w.Name, pressure.Bytes(w.PeakReachable))
	// Output: mlp 1.20 GiB
}
