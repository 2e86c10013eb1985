package command

import (
	"bytes"
	"testing"
)

// BenchmarkCompare is the default comparison, with its pictures and result files.
func BenchmarkCompare(b *testing.B) {
	for b.Loop() {
		var stderr bytes.Buffer
		if status := run(b.Context(), []string{"compare", "-o", b.TempDir()}, new(bytes.Buffer), &stderr); status != 0 {
			b.Fatal(stderr.String())
		}
	}
}
