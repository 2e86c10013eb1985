package arrowfile_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/arrowfile"
	"github.com/eagergc/eagergc/trace/formats/kineto"
	"github.com/eagergc/eagergc/trace/formats/torchsnap"
)

// recorded returns a workload from the folder beside the checkout, with its
// waits.
func recorded(t testing.TB, name string) *trace.Trace {
	t.Helper()
	stem := filepath.Join("..", "..", "..", "shared", "traces", name)
	f, err := os.Open(stem + ".snapshot.pickle.gz")
	if err != nil {
		t.Skipf("needs the recorded workloads beside the checkout: %v", err)
	}
	defer f.Close()
	base, err := torchsnap.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	g, err := os.Open(stem + ".sync.kineto.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	sync, err := kineto.Read(g)
	if err != nil {
		t.Fatal(err)
	}
	merged, err := trace.Merge(base, sync)
	if err != nil {
		t.Fatal(err)
	}
	merged.Name = name
	return merged
}

func TestSizeOnDisk(t *testing.T) {
	for _, name := range []string{"mlp", "resnet", "gpt2", "vit", "gp"} {
		tr := recorded(t, name)
		var b bytes.Buffer
		if err := arrowfile.Write(&b, tr); err != nil {
			t.Fatal(err)
		}
		size := float64(b.Len()) / float64(len(tr.Events))
		t.Logf("%s: %d events, %d bytes, %.2f bytes an event", name, len(tr.Events), b.Len(), size)
		if name == "gpt2" && size > 8 {
			t.Errorf("%s: %.2f bytes an event, want at most 8", name, size)
		}
	}
}
