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

// A labBuild is the simulator for a page.
type labBuild struct {
	glue  string            // Go's wasm_exec.js
	parts map[string][]byte // by name; programs are compressed with zstd
}

// programs are the builds of package lab, by name, with their build tags. A page begins with
// lab, and loads all for the formats that lab does not read.
var programs = map[string]string{"lab": "small", "all": ""}

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
