package formats_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/eagergc/eagergc/trace/formats"
)

// An import takes less memory than three times the unpacked file: even all that
// it allocates from start to end, garbage included, stays below.
func TestImportMemory(t *testing.T) {
	for _, name := range []string{"gpt2.snapshot.pickle.gz", "vit.snapshot.pickle.gz", "gp-full.kineto.json.gz"} {
		file, err := os.ReadFile(filepath.Join(shared, "traces", name))
		if err != nil {
			t.Skipf("needs the recorded workloads beside the checkout: %v", err)
		}
		u, err := gzip.NewReader(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		unpacked, err := io.Copy(io.Discard, u)
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		tr, err := formats.Opener{}.Read(bytes.NewReader(file))
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		used := int64(after.TotalAlloc - before.TotalAlloc)
		t.Logf("%s: %d bytes unpacked, %d allocated, %d events", name, unpacked, used, len(tr.Events))
		if used > 3*unpacked {
			t.Errorf("%s: the import allocated %d bytes, over 3 x %d", name, used, unpacked)
		}
	}
}
