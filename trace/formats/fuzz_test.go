package formats

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// FuzzRead opens any bytes: packed or not, whatever the format. The result is sound, or an
// error.
func FuzzRead(f *testing.F) {
	for _, path := range []string{
		filepath.Join(snapshots, "cut.p4.pickle"), filepath.Join(snapshots, "devices.p4.pickle.gz"),
		filepath.Join(profiles, "devices.json"), filepath.Join(profiles, "sync.json.gz"),
	} {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		tr, err := Opener{}.Read(bytes.NewReader(b))
		if tr == nil {
			if err == nil {
				t.Fatal("neither a trace nor an error")
			}
			return
		}
		if err := tr.Validate(); err != nil {
			t.Fatal(err)
		}
	})
}
