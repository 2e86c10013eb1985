package torchsnap

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shared is where the recorded workloads lie beside the checkout.
func shared(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "shared", "traces", name))
	if err != nil {
		tb.Skipf("needs the recorded workloads beside the checkout: %v", err)
	}
	return unpacked(tb, name, b)
}

// unpacked returns a file whose name ends in .gz unpacked, and any other as it is.
func unpacked(tb testing.TB, name string, b []byte) []byte {
	tb.Helper()
	if strings.HasSuffix(name, ".gz") {
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			tb.Fatal(err)
		}
		if b, err = io.ReadAll(z); err != nil {
			tb.Fatal(err)
		}
	}
	return b
}

func BenchmarkRead(b *testing.B) {
	for _, name := range []string{"gpt2", "vit"} {
		b.Run("trace="+name, func(b *testing.B) {
			file := shared(b, name+".snapshot.pickle.gz")
			b.ReportAllocs()
			b.SetBytes(int64(len(file)))
			for b.Loop() {
				if _, err := Read(bytes.NewReader(file)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
