package pool

import (
	"errors"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/pressure"
)

// The error leads to a page that is there and has the remedies in order.
func TestOutOfMemoryLeadsToAPage(t *testing.T) {
	p := newPool(t, Config{Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 1 << 20}}})
	_, err := p.Alloc(2<<20, 0)
	var oom *OutOfMemoryError
	if !errors.As(err, &oom) || !strings.Contains(oom.Detail(), helpPage) {
		t.Fatalf("no page in: %v", err)
	}
	page, err := os.ReadFile(path.Base(helpPage))
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, remedy := range []string{"holds the memory", "fragments", "smaller batch", "Accumulation", "Recompute", "in place", "Half precision", "Managed memory"} {
		n := strings.Index(string(page)[at:], remedy)
		if n < 0 {
			t.Fatalf("the page lacks %q, or has it too early", remedy)
		}
		at += n
	}
}
