package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/sim"
)

// A file that cannot be written leaves the old one, and nothing half-written.
func TestFolderWritesWholeFilesOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "folder")
	f, err := openFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	for _, c := range []struct {
		name, text string
		fails      error
	}{{"a.txt", "first", nil}, {"a.txt", "sec", broken}} {
		if err := f.write(c.name, func(w io.Writer) error { fmt.Fprint(w, c.text); return c.fails }); !errors.Is(err, c.fails) {
			t.Errorf("%s: %v", c.text, err)
		}
	}
	for _, name := range []string{"../out.txt", strings.Repeat("long", 63)} {
		if err := f.write(name, func(io.Writer) error { return nil }); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	if _, err := os.Stat("/dev/full"); err == nil { // a full disk, where there is one
		if err := writeFile("/dev/full", func(w io.Writer) error { fmt.Fprint(w, "x"); return nil }); err == nil {
			t.Error("a full disk is no error")
		}
	}
	entries, err := os.ReadDir(path)
	if text := read(t, filepath.Join(path, "a.txt")); err != nil || len(entries) != 1 || text != "first" {
		t.Errorf("%v, %v, %q", entries, err, text)
	}
}

// A full disk behind the standard output is an error of each command that prints.
func TestFullDiskBehindTheOutput(t *testing.T) {
	full, broken := io.Pipe()
	full.CloseWithError(errors.New("no space left on device"))
	for _, line := range []string{"info array", "info array --json", "run array", "run array --json", "run array --why", "compare array --policies never -o ''", "compare array --policies never --json -o ''", "compare array --policies never --format csv -o ''",
		"compare array --policies never --format bench -o ''", "advise array thumb --cycle 1ms --worlds 0", "advise array --cycle 1ms --worlds 0 --json", "advise thumb --cycle 1h --device 1MiB --json", "policies", "help environment",
		"live thumb --for 10ms --ballast 0 --speed 0 --touch 0 --scale 100", "live thumb --for 10ms --ballast 0 --speed 0 --touch 0 --scale 100 --json"} {
		var stderr strings.Builder
		if status := run(t.Context(), wordsOf(line), broken, &stderr); status != 1 || !strings.Contains(stderr.String(), "replay: no space left on device") {
			t.Errorf("replay %s: %d %s", line, status, &stderr)
		}
	}
}

// An ending context ends when it has been asked a number of times whether it has.
type ending struct {
	context.Context
	left atomic.Int64
}

func (e *ending) Err() error {
	if e.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// A command whose context ends, at once or in any part of its work, prints nothing and has the status of Ctrl-C.
func TestCommandsEndWithTheirContext(t *testing.T) {
	for _, line := range []string{"compare array -o ''", "advise array --cycle 1ms", "report array -o " + filepath.Join(t.TempDir(), "r.html"), "live array --ballast 0"} {
		for _, after := range []int64{0, 7, 26, 40} {
			if strings.HasPrefix(line, "live") && after > 0 {
				continue // it takes its time
			}
			var out strings.Builder
			ctx := &ending{Context: t.Context()}
			ctx.left.Store(after)
			if status := run(ctx, wordsOf(line), &out, &out); status != interrupted || out.Len() > 0 {
				t.Errorf("replay %s, ended after %d: %d %s", line, after, status, &out)
			}
		}
	}
}

// parseResults reads the JSON results of compare. It leaves out cells without an outcome.
func parseResults(t *testing.T, text string) (results []sim.Result) {
	t.Helper()
	for line := range strings.Lines(text) {
		var r sim.Result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(line, `"elapsed_ns":null`) {
			results = append(results, r)
		}
	}
	return results
}

// Results that go out as JSON come back, and the reader that benchstat uses finds every cell
// that has an outcome.
func TestResultsAreRead(t *testing.T) {
	args := []string{"compare", "mlp", "--policies", "never,threshold:0.9,optimum-blocking", "--limits", "0.5x,2x", "--cycle", "1ms", "-o", "", "--format"}
	results := parseResults(t, replay(t, append(args, "json")...))
	if len(results) != 5 || results[4].Policy != "optimum-blocking" || results[1].FailedAllocs == 0 {
		t.Fatalf("%d results: %+v", len(results), results)
	}
	r := benchfmt.NewReader(strings.NewReader(replay(t, append(args, "bench")...)), "bench")
	var pauses []float64
	for r.Scan() {
		if rec, ok := r.Result().(*benchfmt.Result); ok {
			pause, _ := rec.Value("pause-sec")
			pauses = append(pauses, pause)
		}
	}
	var want []float64
	for _, x := range results {
		want = append(want, x.ExposedPause.Seconds())
	}
	if !slices.Equal(pauses, want) || r.Units().GetAssumption("pause-sec") != benchmath.AssumeExact {
		t.Errorf("benchstat reads pauses of %v, want %v", pauses, want)
	}
}

// The progress of a job says how long it has run and, if its share is known, the time left: on a
// terminal twice a second in one line, elsewhere every ten seconds.
func TestProgressSaysTheTimeLeft(t *testing.T) {
	for terminal, want := range map[bool]string{
		false: "replay: a job: 10s so far, 12.5% done, about 1m10s left\nreplay: a job: 20s so far\nreplay: a job: 30s so far, 100% done, about 0s left\n",
		true:  "\rreplay: a job: 1s so far, 12.5% done, about 7s left\x1b[K\rreplay: a job: 2s so far, 12.5% done, about 11s left\x1b[K\r\x1b[K",
	} {
		synctest.Test(t, func(t *testing.T) {
			var out strings.Builder
			p := &progress{w: &out, what: "a job", terminal: terminal, start: time.Now(), end: make(chan struct{}), ended: make(chan struct{})}
			go p.show()
			p.part(0, 4)(0.5)
			if !terminal {
				time.Sleep(15 * time.Second)
				p.done(0)
				time.Sleep(10 * time.Second)
				p.done(1.1)
				time.Sleep(5 * time.Second)
			}
			time.Sleep(1600 * time.Millisecond)
			if p.stop(); out.String() != want {
				t.Errorf("%q, want %q", out.String(), want)
			}
		})
	}
}

// Advice shows the share of its parts that is done. Each of its simulations here takes 1.1 s.
func TestAdviceShowsItsProgress(t *testing.T) {
	w, _, err := loadWorkload("thumb", false)
	who, err2 := experiment.ParseContenders("never")
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		cmd := new(cobra.Command)
		cmd.SetErr(&out)
		cmd.SetContext(t.Context())
		world := func(limit int64) sim.Config {
			time.Sleep(1100 * time.Millisecond)
			return sim.Config{Limit: limit, Cost: sim.Fixed(time.Millisecond)}
		}
		const want = "replay: advising on thumb: 10s so far\nreplay: advising on thumb: 20s so far, 33.3% done, about 40s left\nreplay: advising on thumb: 30s so far, 33.3% done, about 1m0s left\n" +
			"replay: advising on thumb: 40s so far, 66.7% done, about 20s left\nreplay: advising on thumb: 50s so far, 100% done, about 0s left\n"
		if _, _, err := adviseOn(cmd, experiment.Question{Workload: w, Policies: who, World: world}, true); err != nil || out.String() != want {
			t.Errorf("%q, %v, want %q", out.String(), err, want)
		}
	})
}
