package auto

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/debug"
	"github.com/eagergc/eagergc/gc/policy"
)

// A program sets what its process holds at a second; a cycle of Go's has just run.
type program struct {
	want  string // the verdict after 15 s, and its reason
	until int    // seconds after which it has to hold
	at    func(s int64) (outside, golang, kept int64)
	limit int64
	stuck bool
	false []string // verdicts that would be wrong at any time
}

// Nine small programs, each on a clock of the test: its verdict is right after 15 s, and page, log, Diagnose and the
// collector's snapshot agree. None is called what it is not meanwhile.
func TestNineProgramsAreJudged(t *testing.T) {
	defer gc.SetAllocatorStats(func() (int64, int64) { return -1, -1 })
	saw := func(s, period, height int64) int64 { return s % period * height / period }
	for name, p := range map[string]program{
		"a leak in C":             {want: "growth outside Go: Memory outside the Go heap grows by 170.00 MiB/s, and cycles free nothing of it: now 2.32 GiB.", at: func(s int64) (int64, int64, int64) { return 170 * s, 1, 0 }},
		"a slow leak in C":        {want: "growth outside Go: Memory outside the Go heap grows by 1.97 MiB/s, and cycles free nothing of it: now 684.00 MiB.", until: 200, at: func(s int64) (int64, int64, int64) { return 300 + 2*s + saw(s, 3, 10), 1, 0 }},
		"a leak in Go":            {want: "reachable growth: What the program can reach in the Go heap grows by 40.00 MiB/s: now 560.00 MiB.", at: func(s int64) (int64, int64, int64) { return 20, 40 * s, 0 }},
		"a cache up to a level":   {want: "nothing wrong", false: []string{"growth"}, at: func(s int64) (int64, int64, int64) { return 100 * min(s, 5), 10, 0 }},
		"a slow cache in Go":      {want: "nothing wrong", until: 40, at: func(s int64) (int64, int64, int64) { return 20, 20 * min(s, 25), 0 }},
		"memory that C keeps":     {want: "allocator retention: Of 420.00 MiB resident, C's allocator has kept 300.00 MiB free for 12 s, and Go's 0 B.", at: func(s int64) (int64, int64, int64) { return 400, 10, 300 }},
		"memory it takes and has": {want: "nothing wrong", false: []string{"growth"}, at: func(s int64) (int64, int64, int64) { return 100 + saw(s, 4, 400), 10, 0 }},
		"finalizers cannot run":   {want: "finalizers blocked: Finalizers or cleanups that are due have not run for 10 s: one of them blocks.", stuck: true, at: func(s int64) (int64, int64, int64) { return 20 * s, 10, 0 }},
		"healthy":                 {want: "nothing wrong", false: []string{"growth", "limit", "keep"}, limit: 1000, at: func(s int64) (int64, int64, int64) { return 200 + s%2, 50, 40 }},
		"spiky":                   {want: "nothing wrong", false: []string{"growth", "limit", "keep"}, at: func(s int64) (int64, int64, int64) { return 100 + 800*(s/5%2), 100 + 300*(s/7%2), 0 }},
		"over its limit":          {want: "over the limit: The process holds 420.00 MiB, and its limit is 300.00 MiB.", limit: 300, at: func(s int64) (int64, int64, int64) { return 400, 10, 0 }},
		"near its limit":          {want: "near the limit: The process holds 420.00 MiB of its limit of 420.00 MiB.", limit: 420, at: func(s int64) (int64, int64, int64) { return 400, 10, 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			kept := int64(0)
			gc.SetAllocatorStats(func() (int64, int64) { return 0, kept * mib })
			x := newProcess(t, &stage{touched: 1 << 40, container: p.limit * mib}, Options{})
			until := int64(max(15, p.until))
			for s := range until {
				var outside, golang int64
				outside, golang, kept = p.at(s)
				x.set(func() {
					x.heap = goMemory{mapped: (golang + 10) * mib, objects: golang * mib, live: golang * mib, cycles: uint64(s)}
					if p.stuck {
						x.heap.due = [2]queue{{Queued: uint64(s) + 9, Run: 8}, {Queued: uint64(s), Run: uint64(s)}}
					}
					x.anonymous = outside*mib + x.heap.mapped
				})
				x.second()
				for _, wrong := range p.false {
					if v := x.collector.Snapshot().Process.Verdict; strings.Contains(v, wrong) {
						t.Errorf("after %d s: %s", s, v)
					}
				}
			}
			everywhere(t, x, p.want)
		})
	}
}

// everywhere fails if a place shows another verdict than want, or another reason.
func everywhere(t *testing.T, x *process, want string) {
	t.Helper()
	want, reason, _ := strings.Cut(want, ": ")
	now := x.collector.Snapshot()
	f := debug.Verdict(&now)
	r := httptest.NewRecorder()
	debug.Unguarded(x.collector).ServeHTTP(r, httptest.NewRequest("GET", "/?format=json", nil))
	var page struct {
		Health struct{ Level, Verdict, Text, Do string }
	}
	if err := json.Unmarshal(r.Body.Bytes(), &page); err != nil {
		t.Fatal(err)
	}
	d := debug.Diagnose(t.Context(), x.collector, 0) // it measures this process, and a bad finding goes before that
	if f.Verdict != want || reason != now.Process.Reason || page.Health.Verdict != want || page.Health.Level != f.Level || f.Level != "good" && page.Health.Text != f.Reason || f.Level == "bad" && (d.Verdict != want || !strings.HasPrefix(d.Reason, f.Reason)) {
		t.Errorf("want %s: the snapshot has %+v, the page %+v, Diagnose %s", want, f, page.Health, d.Verdict)
	}
	var told []string
	for _, line := range x.log.list() {
		if strings.Contains(line, "level=WARN") || strings.Contains(line, "level=INFO") && !strings.Contains(line, "nothing to free") {
			told = append(told, line)
		}
	}
	level := map[string]string{"good": "", "watch": "level=INFO", "bad": "level=WARN"}[f.Level]
	if last := fmt.Sprint(told); f.Level == "good" == (f.Verdict != "nothing wrong") || level != "" && (!strings.Contains(last, level) || !strings.Contains(last, want) || !strings.Contains(last, "next=")) || len(told) > 2 {
		t.Errorf("%s: the log has %s", want, told)
	}
}

// What is wrong is logged once, and again when it comes back after a minute.
func TestAVerdictIsLoggedOnce(t *testing.T) {
	x := newProcess(t, &stage{container: 300 * mib, anonymous: 400 * mib}, Options{})
	said := func(seconds int, holds int64) (n int) {
		x.set(func() { x.anonymous = holds * mib })
		for range seconds {
			x.second()
		}
		return strings.Count(fmt.Sprint(x.log.list()), "over the limit")
	}
	for i, c := range []struct {
		seconds     int
		holds, want int64
	}{{5, 400, 1}, {100, 400, 1}, {30, 100, 1}, {5, 400, 1}, {70, 100, 1}, {5, 400, 2}} {
		if got := said(c.seconds, c.holds); int64(got) != c.want {
			t.Errorf("step %d: said %d times, want %d", i, got, c.want)
		}
	}
}

// Memory that stays although cycles run is reported once, to the log and to the program.
func TestHeldMemoryIsReported(t *testing.T) {
	told := make(chan string, 9)
	x := newProcess(t, &stage{anonymous: 900 * mib, heap: goMemory{mapped: 100 * mib}, touched: 1 << 40}, Options{Held: func(bytes int64, stayed time.Duration) { told <- fmt.Sprint(bytes/mib, " MiB ", stayed) }})
	x.set(func() { x.anonymous = 500 * mib })
	for !x.gauge.Barren() {
		x.collector.Collect(policy.TriggerExplicit)
		x.gauge.Look()
	}
	for range 20 {
		x.second()
	}
	const want = `level=INFO msg="eagergc: nothing to free: memory outside the Go heap is held, or leaks" held="400.00 MiB" stayed=10s`
	if text := <-told; text != "400 MiB 10s" || len(told) > 0 || strings.Count(fmt.Sprint(x.log.list()), want) != 1 {
		t.Errorf("told %s, and the log has %s", text, x.log.list())
	}
}
