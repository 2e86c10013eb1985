package torchsnap

import (
	"testing"

	"github.com/eagergc/eagergc/trace"
)

// newest adds what PyTorch's newest versions write to an entry.
func newest(e dict) dict {
	return append(e, item{"user_metadata", "step 3"}, item{"pool_id", list{0, 1}}, item{"compile_context", "N/A"})
}

// Without free_requested (skip_actions), free_completed says when objects died, of
// those that were live before the window too.
func TestSkippedActions(t *testing.T) {
	tr := mustRead(t, pickled(snap(nil,
		newest(entryOf("free_completed", 4096, 512, 10)),
		newest(entryOf("alloc", 8192, 1024, 20)),
		newest(entryOf("free_completed", 8192, 1024, 30)),
	)))
	var drops []int64
	for _, e := range tr.Events {
		if e.Kind == trace.Drop {
			drops = append(drops, e.Time)
		}
	}
	if len(drops) != 2 || drops[0] != 0 || drops[1] != 20_000 {
		t.Errorf("drops at %v ns, want 0 and 20000", drops)
	}
	if got := tr.Meta["drops_known_when_completed"]; got != "2" {
		t.Errorf("drops_known_when_completed is %q, want 2", got)
	}
	if got := tr.Meta["live_before_objects"]; got != "1" {
		t.Errorf("live_before_objects is %q, want 1", got)
	}
	if err := tr.Validate(); err != nil {
		t.Error(err)
	}
}

// With free_requested, free_completed says nothing.
func TestCompletedAfterRequested(t *testing.T) {
	tr := mustRead(t, pickled(snap(nil,
		entryOf("alloc", 8192, 1024, 20),
		entryOf("free_requested", 8192, 1024, 30),
		entryOf("free_completed", 8192, 1024, 40),
	)))
	if len(tr.Events) != 2 || tr.Events[1].Time != 10_000 || tr.Meta["drops_known_when_completed"] != "" {
		t.Errorf("%v, %v", tr.Events, tr.Meta)
	}
}
