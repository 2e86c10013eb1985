package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

var patched = flag.Bool("patched", false, "build a program with a patched Go, and run it")

// TestAnchorsAreThere patches the Go that is installed, and the clients of this checkout.
func TestAnchorsAreThere(t *testing.T) {
	root, err := goroot()
	if err != nil {
		t.Fatal(err)
	}
	clients, err := filepath.Abs("../../clients")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range rules {
		if _, err := patch(root, rule, clients, t.TempDir()); err != nil {
			t.Errorf("%s: %v", rule, err)
		}
	}
}

// TestBadArguments gives each command an argument that it refuses.
func TestBadArguments(t *testing.T) {
	for want, args := range map[string][]string{
		"want build":  {},
		"no rule":     {"-rule", "high", "build"},
		"no command":  {"pear"},
		"no runs":     {"tables", "-o", t.TempDir()},
		"want a fold": {"clients"},
	} {
		if err := run(args, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}

// TestTables makes the table of the results again, from their runs.
func TestTables(t *testing.T) {
	const results = "../../../results/2026-11-26-proposal"
	want, err := os.ReadFile(filepath.Join(results, "clients.md"))
	dir := t.TempDir()
	if err = errors.Join(err, os.CopyFS(dir, os.DirFS(results))); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = run([]string{"tables", "-o", dir}, &out)
	if wrote, _ := os.ReadFile(filepath.Join(dir, "clients.md")); err != nil || out.String() != string(want) || string(wrote) != string(want) {
		t.Errorf("%v, now\n%s\nwrote\n%s", err, &out, wrote)
	}
	for text, want := range map[string]string{"client,way\n": "runs.csv:1: want columns", "client,way,mean_mib,cpu_s\na,told,1,2\na,told,x,2\n": "runs.csv:3: ", "a,\"": "runs.csv: parse error"} {
		os.WriteFile(filepath.Join(dir, "runs.csv"), []byte(text), 0o644)
		if err := run([]string{"tables", "-o", dir}, &out); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestPatchedGoBoundsExternalMemory runs a program that maps 600 MiB and reaches 64 of them. Its Go
// heap stays below the heap minimum. With the patch, cycles run and memory stays bounded.
func TestPatchedGoBoundsExternalMemory(t *testing.T) {
	if !*patched {
		t.Skip("builds the standard library; run it with -patched")
	}
	program := filepath.Join(t.TempDir(), "ring")
	if err := run([]string{"build", "-o", program, "./testdata/ring"}, &strings.Builder{}); err != nil {
		t.Fatal(err)
	}
	peak := make(map[string]ring)
	for _, tell := range []string{"-tell=false", "-tell"} {
		out, err := exec.Command(program, tell, "-n", "600").Output()
		var r ring
		if err == nil {
			err = json.Unmarshal(out, &r)
		}
		if err != nil {
			t.Fatal(err)
		}
		peak[tell] = r
	}
	if r := peak["-tell=false"]; r.Marks > 0 || r.Peak != 600 {
		t.Errorf("not reported: %d cycles, peak of %d MiB, want 0 and 600", r.Marks, r.Peak)
	}
	if r := peak["-tell"]; r.Marks < 3 || r.Peak >= 600 {
		t.Errorf("reported: %d cycles, peak of %d MiB", r.Marks, r.Peak)
	}
}

// fakeGo is a go command whose root and checkout are its own folder, and the script .ci/with of that checkout. It logs its
// arguments and the files of its overlay. Its programs report what differs by their rule, way, length and round.
const fakeGo = `#!/bin/sh
[ "$1" = "$BROKEN" ] && exit 1
overlay=${GOFLAGS%% -mod*} overlay=${overlay#-overlay=}
case $1 in
env | list) exec echo "$HERE$BROKEN" ;;
build) overlay=$3 ;;
esac
{ echo "$@" "$GOFLAGS"; cd "$(dirname "$overlay")" && tail -n +1 *; } >>"$HERE/log"
case "$*" in
*strangers=true) exit 1 ;;
cmd*) exec cp "$HERE/runs.csv" "$6" ;;
esac
cat >"$5" <<'END' && chmod +x "$5"
#!/bin/sh
[ "$1" = "$BROKEN" ] && exit 1
rule=${0##*/} runs=$0$1$3
echo >>"$runs" && k=$((${#rule} + ${#1} + 3*$(wc -l <"$runs")))
echo "gc $k @0.1s 0%: 0.1+$k.5+0.2 ms clock, $GODEBUG" >&2
echo "{\"Objects\":$3,\"Took\":$3${k}0000,\"Peak\":$(($3/9 + k)),\"Marks\":$(($3/64 + k)),\"Cycles\":[{\"Freed\":3$k,\"First\":${k}000000,\"Settle\":${k}9000000,\"Peak\":1$k},{\"Freed\":33,\"First\":${k}00000,\"Settle\":${k}000000,\"Peak\":1${k}9},{\"Freed\":32,\"Settle\":900,\"Peak\":9}]}"
END
`

// TestMeasures runs ring and clients with a go command that builds nothing. The digest is of the tables, the files, and the
// commands with their overlays: where one changed as it should, the test logs all of it for a comparison with the text before.
func TestMeasures(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the go command of this test is a script")
	}
	here := t.TempDir()
	files := map[string]string{"go": fakeGo, ".ci/with": fakeGo, "tmp/x": "", "x/src/runtime/mgcpacer.go": "", "x/src/runtime/mgc.go": "", "runs.csv": "client,way,mean_mib,cpu_s\na,told,1,2\na,own,3,5\na,told,2,3\na,own,5,8\na,told,4,4\nb,plain,7,8\nb,told,9,8\n"}
	for _, e := range edits {
		files["src/"+e.file] += e.anchor
	}
	for _, e := range clientEdits {
		files["cmd/clients/"+e.file] += e.anchor + "\n"
	}
	for name, text := range files {
		name = filepath.Join(here, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{"HERE": here, "GOFLAGS": "-mod=mod", "TMPDIR": here + "/tmp", "PATH": here + ":" + os.Getenv("PATH")} {
		t.Setenv(name, value)
	}
	var out strings.Builder
	for _, args := range [][]string{{"-rule", "goal", "build", "-o", here + "/p", "-v"}, {"ring", "-rounds", "3", "-o", here + "/out"}, {"clients", "-rounds", "2", "-only", "a,b", "-o", here + "/out"}} {
		if err := run(args, &out); err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
	for _, name := range []string{"out/ring.csv", "out/ring.md", "out/clients.md", "log"} {
		text, err := os.ReadFile(filepath.Join(here, name))
		fmt.Fprintf(&out, "%s %v\n%s", name, err, text)
	}
	all := regexp.MustCompile(`/(extmem|ring)\d+`).ReplaceAllString(strings.ReplaceAll(out.String(), here, ""), "/$1")
	if got := fmt.Sprintf("%.4x", sha256.Sum256([]byte(all))); got != "946044ea" {
		t.Errorf("the digest is %s of\n%s", got, all)
	}
	for _, c := range []string{"env build", "build build", "/none build -o " + here + "/p", "/x build -o " + here + "/p", "env clients -o " + here, "list clients -o " + here, " clients -o " + here + "/go/x", "env ring", "list ring", "build ring", "-tell ring", " ring -rounds 1 -o " + here + "/go"} {
		broken, args, _ := strings.Cut(c, " ")
		t.Setenv("BROKEN", broken)
		if err := run(strings.Fields(args), io.Discard); err == nil {
			t.Errorf("%s does it", c)
		}
	}
	if left, _ := os.ReadDir(here + "/tmp"); len(left) != 1 {
		t.Errorf("folders are left: %v", left)
	}
}
