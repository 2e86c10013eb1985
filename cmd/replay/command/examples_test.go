package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// shorter has flags that shorten the long examples, unless EAGERGC_EXAMPLES=whole.
var shorter = map[string][]string{
	"replay compare":   {"mlp", "--policies", "never,pacer"},
	"replay report":    {"mlp", "--policies", "never,pacer"},
	"replay calibrate": {"--help"}, // which reads the flags first; it measures for seconds, in testdata/script/live.txtar
	"replay live":      {"--for", "50ms", "--ballast", "1MiB", "--measure", "0", "--speed", "0", "--touch", "0"},
	"replay advise":    {"--worlds", "0"},
}

// unlike are examples that a test cannot run, and why.
var unlike = map[string]string{
	"replay lab":              "serves until Ctrl-C",
	"replay lab -o lab.html":  "TestLab builds the page",
	"replay advise my.arrows": "measures a cycle for seconds, as calibrate does in testdata/script/live.txtar",
	"replay import killed.arrows.partial --recover -o run.arrows": "a recorder has to be killed for it",
}

// Every example of the help runs as written, in a folder with its files.
func TestExamples(t *testing.T) {
	snapshots, err := filepath.Abs("../../../trace/formats/torchsnap/testdata")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for _, name := range []string{"snapshot.pickle", "snapshot.pickle.gz"} {
		text, err := os.ReadFile(filepath.Join(snapshots, strings.Replace(name, "snapshot", "devices.p4", 1)))
		if err != nil {
			t.Fatal(err)
		}
		os.WriteFile(name, text, 0o644)
	}
	for _, name := range []string{"my.arrows", "run.arrows"} {
		replay(t, "import", "snapshot.pickle", "-o", name)
	}
	replay(t, "compare", "mlp", "--policies", "cudajl", "-o", "replay-out")
	const machine = `{"about": "a test", "mark": {"base_ns": 100000}, "settle": {"per_object_ns": 50}, "stretch": 1.5, "noise": [0.9, 1, 1.5]}`
	os.WriteFile("machine.json", []byte(machine), 0o644) // where calibrate finds the machine too busy
	n, ran := 0, make(map[string]bool)
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for line := range strings.Lines(c.Example) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), "  #")
			for _, one := range strings.Split(line, " && ") {
				one, _, _ = strings.Cut(one, " | ")
				one, out, redirected := strings.Cut(strings.TrimSpace(one), " > ")
				args := wordsOf(one)
				if _, why := unlike[one]; why || len(args) == 0 || args[0] != "replay" || strings.Contains(line, "--sync") {
					continue
				}
				if len(args) > 1 && os.Getenv("EAGERGC_EXAMPLES") != "whole" {
					more := shorter["replay "+args[1]]
					if len(more) > 0 && !strings.HasPrefix(more[0], "-") && len(args) > 2 && !strings.HasPrefix(args[2], "-") {
						more = more[1:]
					}
					args = append(args, more...)
				}
				if args[1] == "calibrate" && !strings.HasPrefix(args[2], "-") {
					continue // of a run that was shortened
				}
				key := strings.Join(args, " ")
				if n++; ran[key] {
					continue // two that were shortened to one
				}
				ran[key] = true
				var stdout, stderr bytes.Buffer
				status := run(t.Context(), args[1:], &stdout, &stderr)
				if status != 0 {
					t.Errorf("%s\n%s", one, &stderr)
				}
				if redirected {
					os.WriteFile(out, stdout.Bytes(), 0o644)
				}
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot())
	if n < 34 {
		t.Errorf("%d examples ran", n)
	}
}

// wordsOf cuts a line as a shell does that knows quotes only.
func wordsOf(line string) (all []string) {
	quoted, word, any := false, "", false
	for _, r := range line + " " {
		switch {
		case r == '\'':
			quoted, any = !quoted, true
		case r == ' ' && !quoted:
			if word != "" || any {
				all = append(all, word)
			}
			word, any = "", false
		default:
			word += string(r)
		}
	}
	return all
}
