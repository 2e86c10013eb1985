//go:build linux

package malloc

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/auto"
	"github.com/eagergc/eagergc/gc/debug"
)

// watched are programs under the import, that work each 10 ms, and the verdict on them after 15 s.
var watched = map[string]struct {
	want, env string
	prepare   func()
	work      func(i int)
	leaks     bool // as fast on a busy machine: after a late step the next ones follow at once
}{
	"a leak in C":  {want: "growth outside Go", leaks: true, work: func(int) { mallocBytes(mib); mallocBytes(mib / 2) }},
	"a leak in Go": {want: "reachable growth", leaks: true, work: func(int) { held, _ := kept.([][]byte); kept = append(held, touched(make([]byte, mib/2))) }},
	"a cache up to a level": {want: "nothing wrong", work: func(i int) {
		if held, _ := kept.([]*handle); i < 300 {
			kept = append(held, rawHandle(mib))
		}
	}},
	"finalizers cannot run": {want: "finalizers blocked", prepare: func() {
		runtime.SetFinalizer(new(handle), func(*handle) { select {} })
		runtime.GC()
	}, work: func(int) {
		h := rawHandle(mib / 4)
		runtime.SetFinalizer(h, func(h *handle) { freeBytes(h.data) })
	}},
	"memory that C keeps": {want: "allocator retention", env: "EAGERGC_TRIM=off", prepare: func() { keepArenas(400 * mib) }},
	"memory that it takes and has freed": {want: "nothing wrong", prepare: func() { kept = rawHandle(100 * mib) }, work: func(i int) {
		if i%100 == 0 {
			another := rawHandle(200 * mib)
			time.Sleep(300 * time.Millisecond)
			freeBytes(another.data)
		}
	}},
	"healthy": {want: "nothing wrong", work: func(int) { newHandle(mib / 4) }},
	"spiky": {want: "nothing wrong", work: func(i int) {
		for range i / 200 % 2 * 8 {
			newHandle(mib)
		}
	}},
	"over its limit": {want: "over the limit", env: "EAGERGC_HOST_HARD_MEMORY_LIMIT=100MiB", prepare: func() { kept = rawHandle(300 * mib) }},
}

// Nine programs under the import, each a process of its own: page, log and Diagnose agree, and are
// right.
func TestNineProgramsUnderTheImport(t *testing.T) {
	const child = "EAGERGC_TEST_WATCHED"
	if p, ok := watched[os.Getenv(child)]; ok {
		if p.prepare != nil {
			p.prepare()
		}
		const step, length = 10 * time.Millisecond, 15500 * time.Millisecond
		for i, begin := 0, time.Now(); time.Since(begin) < length; i++ {
			if p.work != nil {
				p.work(i)
			}
			if p.leaks {
				time.Sleep(time.Until(begin.Add(time.Duration(i+1) * step)))
			} else {
				time.Sleep(step)
			}
		}
		r := httptest.NewRecorder()
		debug.Unguarded(auto.Collector()).ServeHTTP(r, httptest.NewRequest("GET", "/?format=json", nil))
		var page struct {
			Health struct{ Verdict, Text string }
		}
		if err := json.Unmarshal(r.Body.Bytes(), &page); err != nil {
			t.Fatal(err)
		}
		d := debug.Diagnose(t.Context(), auto.Collector(), 0)
		println("page:", page.Health.Verdict, "diagnose:", d.Verdict, page.Health.Text)
		return
	}
	if testing.Short() {
		t.Skip("takes 16 s beside nine programs")
	}
	var all sync.WaitGroup // side by side on any number of processors: they sleep nearly all the time
	defer all.Wait()
	for name, p := range watched {
		all.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestNineProgramsUnderTheImport$")
			cmd.Env = append(os.Environ(), child+"="+name, p.env)
			out, err := cmd.CombinedOutput()
			text := string(out)
			if err != nil || !strings.Contains(text, "page: "+p.want+" diagnose: "+p.want) || (p.want == "nothing wrong") == strings.Contains(text, " eagergc: "+p.want+": ") {
				t.Errorf("%s: want %s, %v:\n%s", name, p.want, err, text)
			}
		})
	}
}
