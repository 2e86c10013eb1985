package command

import (
	"flag"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the goldens in testdata/script")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"replay": Main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Setup: func(e *testscript.Env) error { // what steers a terminal
			e.Setenv("ESC", "\x1b")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"refuse": refuse,
			"cut":    cut,
			"flip":   flip,
		},
	})
}

// refuse PATTERN ARG... runs replay, which must fail with an error that matches the pattern.
func refuse(ts *testscript.TestScript, neg bool, args []string) {
	if err := ts.Exec("replay", args[1:]...); err == nil {
		ts.Fatalf("replay %q does it", args[1:])
	}
	if text := ts.ReadFile("stderr"); !regexp.MustCompile(args[0]).MatchString(text) {
		ts.Fatalf("replay %q says %q", args[1:], text)
	}
}

// cut FILE N keeps the first N bytes of a file.
func cut(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), n))
}

// flip FILE N inverts the byte at offset N of a file.
func flip(ts *testscript.TestScript, neg bool, args []string) {
	path := ts.MkAbs(args[0])
	data, err := os.ReadFile(path)
	ts.Check(err)
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	data[n] ^= 0xff
	ts.Check(os.WriteFile(path, data, 0o644))
}
