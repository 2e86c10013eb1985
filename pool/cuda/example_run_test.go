package cuda_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"testing"

	"github.com/eagergc/eagergc/pool/cuda"
)

// TestExampleTraining runs the Example where there is a GPU: it has no checked
// output of its own, so that it is compiled everywhere.
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

// A newcomer has a first array and a kernel in at most 10 lines.
func TestShortestProgram(t *testing.T) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, "example_test.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "Example" {
			if n := files.Position(f.Body.Rbrace).Line - files.Position(f.Body.Lbrace).Line - 1; n > 10 {
				t.Errorf("the shortest program has %d lines", n)
			}
			return
		}
	}
	t.Error("there is no shortest program")
}
