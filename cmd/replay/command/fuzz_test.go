package command

import (
	"testing"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
)

// FuzzArguments gives every reader of an argument the same text: none panics,
// and an accepted text means something.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{
		"1.5x", "8GiB", "1.5x,2x,4x", "10ms", "-1ns", "0", "50%",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if cost, err := experiment.ParseCycle(text); err == nil && cost.Base < 0 {
			t.Fatalf("cycle %q takes %v", text, cost.Base)
		}
		if n, err := experiment.ParseBytes(text); err == nil && n < 0 {
			t.Fatalf("%q is %d bytes", text, n)
		}
	})
}
