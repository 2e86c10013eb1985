package command

import (
	"bytes"
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

	"github.com/klauspost/compress/zstd"

	"github.com/eagergc/eagergc/trace/formats/samples"
)

// A labBuild is the simulator as a page carries it.
type labBuild struct {
	glue  string            // Go's wasm_exec.js
	parts map[string][]byte // by name; programs are packed with zstd
}

// programs are the builds of package lab: what the page needs to begin with, and what
// it loads for the formats that this one does not read.
var programs = map[string]string{"lab": "small", "all": ""}

// Functions are inlined in our own packages alone: it makes the program a tenth smaller,
// and replays no slower.
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
	b := &labBuild{glue: string(glue), parts: make(map[string][]byte)}
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		return nil, err
	}
	for name, tags := range programs {
		file := filepath.Join(dir, name+".wasm")
		if _, err := goCommand(ctx, src, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", inlineNone, inlineOurs, "-tags="+tags, "-o", file, "./lab"); err != nil {
			return nil, err
		}
		wasm, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		b.parts[name] = zip.EncodeAll(wasm, nil)
	}
	return b, nil
}

const samplePart = "sample-"

// part returns a part of the page by its name: a program, or a built-in recording.
func (b *labBuild) part(name string) ([]byte, error) {
	if data, ok := b.parts[name]; ok {
		return data, nil
	}
	if sample, ok := strings.CutPrefix(name, samplePart); ok {
		return samples.File(sample)
	}
	return nil, fmt.Errorf("lab: no part %q", name)
}

// labSource is the folder of the module that this program was built from: a checkout,
// or the module cache.
func labSource(ctx context.Context) (string, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return "", errors.New("lab: the page's program is built with the go command, which is not here: write the page where Go is, with replay lab -o lab.html, and open it in any browser")
	}
	_, file, _, _ := runtime.Caller(0)
	src := filepath.Dir(filepath.Dir(file))
	if _, err := os.Stat(filepath.Join(src, "lab", "main.go")); err == nil {
		return src, nil
	}
	b, ok := debug.ReadBuildInfo()
	if !ok || b.Main.Version == "" || b.Main.Version == "(devel)" {
		return "", fmt.Errorf("lab: the source that this replay was built from is no more at %s: build replay again, with go install", src)
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
