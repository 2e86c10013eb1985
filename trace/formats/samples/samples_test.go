package samples_test

import (
	"fmt"
	"testing"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace/formats/samples"
)

// The figures are those of the recordings' README and golden results.
func TestSamplesAreWhatTheyAreSaidToBe(t *testing.T) {
	want := map[string]string{
		"mlp":      "22942 allocations, 16 waits",
		"resnet":   "28244 allocations, 402 waits",
		"gpt2":     "53763 allocations, 250 waits",
		"vit":      "69075 allocations, 190 waits",
		"gp":       "37734 allocations, 2037 waits",
		"gnn":      "11274 allocations, 608 waits",
		"burst":    "50642 allocations, 862 waits",
		"rcnn":     "67009 allocations, 3211 waits",
		"ppo":      "124104 allocations, 3508 waits",
		"serve":    "125156 allocations, 1548 waits",
		"spectral": "102029 allocations, 80 waits",
	}
	for _, name := range samples.Names() {
		check(t, name, pressure.Device(0), want[name])
	}
	if len(want) != len(samples.Names()) {
		t.Errorf("%d names, want %d", len(samples.Names()), len(want))
	}
}

func TestProgramsAreWhatTheyAreSaidToBe(t *testing.T) {
	want := map[string]string{
		"thumb":  "388 allocations, 4 waits",
		"matrix": "3600 allocations, 4 waits",
		"wasm":   "400 allocations, 4 waits",
		"arrow":  "400 allocations, 4 waits",
		"query":  "1430 allocations, 4 waits",
	}
	for _, name := range samples.Programs() {
		check(t, name, pressure.Host, want[name])
	}
	want = map[string]string{
		"array": "334 allocations, 332 waits",
		"dense": "1093 allocations, 1087 waits",
		"conv":  "2203 allocations, 249 waits",
		"infer": "1683 allocations, 1680 waits",
	}
	for _, name := range samples.GoMLX() {
		check(t, name, pressure.Device(0), want[name])
	}
}

func check(t *testing.T, name string, space pressure.Space, want string) {
	t.Helper()
	tr, err := samples.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	w, err := sim.Compile(tr, space)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%d allocations, %d waits", w.Allocs, w.Syncs); tr.Name != name || got != want {
		t.Errorf("%s is %q with %s, want %s", name, tr.Name, got, want)
	}
}

func TestUnknownName(t *testing.T) {
	if _, err := samples.Open("../samples"); err == nil {
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

// Every recording is one that the other formats take.
func TestSamplesAreValid(t *testing.T) {
	for _, name := range samples.All() {
		recording, err := samples.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := recording.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
