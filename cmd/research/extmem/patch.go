package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// rules are the definitions of the external bytes that count as live:
//
//	low     the lowest level since the last mark, as in V8
//	marked  the level at the end of the last mark, as in the first draft of the proposal
//	goal    as low, but the bytes lower the heap goal in place of counting as allocated
var rules = []string{"low", "marked", "goal"}

// An edit replaces an anchor in a file. The anchor must occur there exactly once.
type edit struct{ file, anchor, by string }

// edits change Go's runtime. Its files are below GOROOT/src.
var edits = []edit{
	{"runtime/mgcpacer.go", "c.heapMarked = bytesMarked\n", "c.heapMarked = bytesMarked\n\texternalMarked()\n"},
	{"runtime/mgcpacer.go", "goal = c.gcPercentHeapGoal.Load()\n", "goal = externalGoal(c.gcPercentHeapGoal.Load(), c.gcPercent.Load())\n"},
	{"runtime/mgc.go", "gcController.heapLive.Load() >= trigger\n", "gcController.heapLive.Load()+externalGrowth() >= trigger\n"},
}

// clientEdits give the clients the way told. Their files are below cmd/clients.
var clientEdits = []edit{
	{"frame/way.go", `case "plain", "close",`, `case "told", "plain", "close",`},
	{"frame/way.go", "default:\n\t\truntime.AddCleanup(owner, free, arg)", "default:\n\t\ttell(w, owner, bytes, free, arg)"},
	{"frame/way.go", "if w.own {\n\t\tgc.Count(w.collector, owner, bytes)\n", "tellHeld(w, owner, bytes)\n\tif w.own {\n\t\tgc.Count(w.collector, owner, bytes)\n"},
}

var (
	//go:embed files/runtime.go.txt
	runtimeFile string
	//go:embed files/debug.go.txt
	debugFile string
	//go:embed files/frame.go.txt
	frameFile string
)

// goroot returns the root of the installed Go.
func goroot() (string, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// patch writes an overlay for `go build -overlay` into a folder, and returns the name of its file.
// The overlay patches the Go of root with a rule, and the clients of the folder clients, if that is
// not empty. Neither Go nor the clients are changed on disk.
func patch(root, rule, clients, folder string) (overlay string, err error) {
	src := filepath.Join(root, "src")
	w := writer{folder: folder, replace: make(map[string]string)}
	w.edit(src, edits)
	w.add(filepath.Join(src, "runtime/external.go"), strings.Replace(runtimeFile, "RULE", rule, 1))
	w.add(filepath.Join(src, "runtime/debug/external.go"), debugFile)
	if clients != "" {
		w.edit(clients, clientEdits)
		w.add(filepath.Join(clients, "frame/told.go"), frameFile)
	}
	text, err := json.Marshal(map[string]any{"Replace": w.replace})
	if w.err != nil {
		return "", w.err
	}
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(folder, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o666)
}

// A writer collects the files of an overlay.
type writer struct {
	folder  string
	replace map[string]string // overlaid files, by the names that they replace
	err     error
}

// edit adds the files below a folder that edits change.
func (w *writer) edit(below string, edits []edit) {
	changed := make(map[string]string)
	var names []string
	for _, e := range edits {
		name := filepath.Join(below, e.file)
		text, ok := changed[name]
		if !ok {
			read, err := os.ReadFile(name)
			if err != nil {
				w.fail(err)
				return
			}
			text, names = string(read), append(names, name)
		}
		if n := strings.Count(text, e.anchor); n != 1 {
			w.fail(fmt.Errorf("%s: the anchor %q occurs %d times, want once: this version needs another edit", name, e.anchor, n))
			return
		}
		changed[name] = strings.Replace(text, e.anchor, e.by, 1)
	}
	for _, name := range names {
		w.add(name, changed[name])
	}
}

// add adds one file under the name that it has for the build.
func (w *writer) add(name, text string) {
	file := filepath.Join(w.folder, fmt.Sprintf("%d-%s", len(w.replace), filepath.Base(name)))
	w.replace[name] = file
	w.fail(os.WriteFile(file, []byte(text), 0o666))
}

func (w *writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}
