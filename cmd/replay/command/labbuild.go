package command

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/eagergc/eagergc/trace/formats/samples"
)

// A labBuild is the simulator for a page.
type labBuild struct {
	glue    string // Go's wasm_exec.js
	program []byte // package lab, compressed with gzip
}

// Only functions of this project are inlined. That makes the program a tenth smaller, and
// replays as fast.
const (
	inlineNone = "-gcflags=all=-l"
	inlineOurs = "-gcflags=github.com/eagergc/eagergc/...="
)

// buildLab builds package lab with the go command, from the source of this program.
func buildLab(ctx context.Context) (*labBuild, error) {
	src, err := labSource(ctx)
	if err != nil {
		return nil, err
	}
	root, err := goCommand(ctx, src, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	glue, err := os.ReadFile(filepath.Join(strings.TrimSpace(root), "lib", "wasm", "wasm_exec.js"))
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	dir, err := os.MkdirTemp("", "eagergc-lab-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "lab.wasm")
	if _, err := goCommand(ctx, src, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", inlineNone, inlineOurs, "-o", file, "./lab"); err != nil {
		return nil, err
	}
	wasm, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // such a level exists
	zip.Write(wasm)                                              // writing to a buffer cannot fail
	zip.Close()
	return &labBuild{glue: string(glue), program: packed.Bytes()}, nil
}

const (
	programPart = "program"
	samplePart  = "sample-" // followed by a name
)

// part returns a part of the page by its name: the program, or a built-in recording.
func (b *labBuild) part(name string) ([]byte, error) {
	if name == programPart {
		return b.program, nil
	}
	if sample, ok := strings.CutPrefix(name, samplePart); ok {
		return samples.File(sample)
	}
	return nil, fmt.Errorf("lab: no part %q", name)
}

// labSource returns the folder of this program's module: a checkout, or the module cache.
func labSource(ctx context.Context) (string, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return "", errors.New("lab: no go command to build the page's program: run replay lab -o lab.html on a machine with Go, and open the file in any browser")
	}
	_, file, _, _ := runtime.Caller(0)
	src := filepath.Dir(filepath.Dir(file))
	if _, err := os.Stat(filepath.Join(src, "lab", "main.go")); err == nil {
		return src, nil
	}
	b, ok := debug.ReadBuildInfo()
	if !ok || b.Main.Version == "" || b.Main.Version == "(devel)" {
		return "", fmt.Errorf("lab: the source of this replay is not at %s any more: build replay again, with go install", src)
	}
	text, err := goCommand(ctx, os.TempDir(), "mod", "download", "-json", b.Main.Path+"@"+b.Main.Version)
	if err != nil {
		return "", err
	}
	var module struct{ Dir string }
	return module.Dir, json.Unmarshal([]byte(text), &module)
}

// goCommand runs go for the browser in a folder and returns its output.
func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "GOFLAGS=-mod=readonly", "GOWORK=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("lab: go %s: %w\n%s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}
