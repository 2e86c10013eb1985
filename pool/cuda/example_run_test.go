//go:build cuda

package cuda_test

import (
	"io"
	"os"
	"testing"

	"github.com/eagergc/eagergc/pool/cuda"
)

// TestExampleTraining runs both examples on a GPU. They have no checked output of their own, because
// most machines have none.
func TestExampleTraining(t *testing.T) {
	if n, err := cuda.Count(); err != nil || n == 0 {
		t.Skipf("no GPU: %d devices, %v", n, err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = write
	Example()
	Example_training()
	os.Stdout = stdout
	write.Close()
	got, err := io.ReadAll(read)
	if want := "float32[3] in device0 memory: 2.5 3 3.5 <nil>\nweights 3.00 to 3.00, within the limit: true\n"; err != nil || string(got) != want {
		t.Errorf("printed %q, %v; want %q", got, err, want)
	}
}
