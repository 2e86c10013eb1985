package command

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/eagergc/eagergc/"

// The packages that an app links when it imports one of ours. A package links only the packages
// for its job; each ban names the cost.
func TestDeps(t *testing.T) {
	heavy := map[string]string{
		"gonum.org/v1/plot":                   "8 MB of binary for pictures: only cmd/replay/chart draws",
		"github.com/prometheus/client_golang": "7 MB and a metrics registry: only gc/with/prom exports",
		"gorgonia.org/cu":                     "cgo and a CUDA toolkit: only pool/cuda reaches a device",
		"github.com/spf13/cobra":              "a command line: only cmd/replay has one",
		"github.com/montanaflynn/stats":       "summaries are for cmd/replay",
		"github.com/google/pprof/profile":     "a profile's reader, too: only trace/formats/pprof writes profiles",
		"net/http":                            "a library that counts bytes opens no ports",
		module + "sim":                        "an app does not replay itself",
		"github.com/klauspost/compress":       "a program that records packs with zstd if it imports trace/formats/zstd",
	}
	with := func(more map[string]string, less ...string) map[string]string {
		all := make(map[string]string)
		for _, m := range []map[string]string{heavy, more} {
			for path, why := range m {
				all[path] = why
			}
		}
		for _, path := range less {
			delete(all, path)
		}
		return all
	}
	bans := map[string]map[string]string{
		"pressure":                with(map[string]string{module + "gc": "pressure is below gc", module + "trace": "a trace is made of samples, not the reverse"}),
		"trace":                   with(map[string]string{module + "gc": "a recording outlives the collector that was recorded"}),
		"gc/policy":               with(map[string]string{module + "trace": "a rule knows no recording"}),
		"gc/auto":                 heavy,
		"gc/gctest":               with(map[string]string{module + "trace": "tests of a binding link what the binding does"}),
		"gc":                      with(map[string]string{module + "pool": "policies serve memory of any owner"}),
		"sim":                     with(map[string]string{module + "pool": "a replay holds no memory"}, module+"sim"),
		"trace/formats/torchsnap": heavy,
		"trace/formats/kineto":    heavy,
		"pool":                    heavy,
		"gc/debug":                with(nil, "net/http"),
	}
	links := deps(t, append(slices.Collect(maps.Keys(bans)), "cmd/replay"))
	for pkg, banned := range bans {
		for path := range links[pkg] {
			for bad, why := range banned {
				if path == bad || strings.HasPrefix(path, bad+"/") && bad != module+"trace" {
					t.Errorf("%s imports %s: %s", pkg, path, why)
				}
			}
		}
	}
	all := links["cmd/replay"]
	for path := range all {
		if strings.HasPrefix(path, "github.com/apache/beam/") {
			t.Errorf("cmd/replay imports %s: Beam's 800 packages are for sim/fleet/beam alone", path)
		}
	}
	for bad := range heavy {
		if bad != "gorgonia.org/cu" && bad != "github.com/prometheus/client_golang" && !all[bad] {
			t.Errorf("%s is banned but cmd/replay does not link it: is the path right?", bad)
		}
	}
}

// deps returns the packages that each package of ours links.
func deps(t *testing.T, packages []string) map[string]map[string]bool {
	t.Helper()
	args := []string{"list", "-f", `{{.ImportPath}} {{join .Deps " "}}`}
	for _, pkg := range packages {
		args = append(args, module+pkg)
	}
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		t.Fatalf("go %v: %v", args, err)
	}
	all := make(map[string]map[string]bool)
	for line := range strings.Lines(string(out)) {
		paths := strings.Fields(line)
		links := make(map[string]bool)
		for _, path := range paths {
			links[path] = true
		}
		all[strings.TrimPrefix(paths[0], module)] = links
	}
	return all
}
