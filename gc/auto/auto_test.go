package auto

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// The tests start watchers of their own, but for children.
func TestMain(m *testing.M) {
	if child := children[os.Getenv(childVariable)]; child != nil {
		child()
		os.Exit(0)
	}
	Stop()
	m.Run()
}

const childVariable = "EAGERGC_TEST_CHILD"

// children are programs that a test starts.
var children = map[string]func(){
	"lives": func() {
		fmt.Println("collector", Collector() != nil)
		fmt.Println("stress", isStress())
		time.Sleep(15 * startAfter)
	},
	"limits": func() {
		debug.SetMemoryLimit(300 << 20)
		Collector()
		time.Sleep(reviewEvery * 3 / 2)
		fmt.Println("limit", debug.SetMemoryLimit(-1))
	},
	"none": func() {
		debug.SetMemoryLimit(math.MaxInt64)
		Collector()
		time.Sleep(reviewEvery * 3 / 2)
		fmt.Println("limit", debug.SetMemoryLimit(-1))
	},
	"stops": func() {
		Stop()
		fmt.Println("limit", debug.SetMemoryLimit(-1))
		time.Sleep(5 * startAfter)
		fmt.Println("collector", Collector() != nil)
	},
	"leaves": func() {
		Collector()
		time.Sleep(reviewEvery * 3 / 2)
		fmt.Println("steered", debug.SetMemoryLimit(-1) < 1<<40)
		Stop()
		fmt.Println("limit", debug.SetMemoryLimit(-1))
	},
}

func isStress() bool { _, ok := running.keeper.(*stress); return ok }

// run is the test's own binary as one of the children; it returns what that says.
func run(t *testing.T, child string, env ...string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), childVariable+"="+child), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// A stage is a host that a test sets.
type stage struct {
	anonymous, golang, container atomic.Int64
	others                       int64 // bytes of other processes in the container
	waiting                      float64
	needs                        int64        // of golang
	ready                        atomic.Int64 // of golang, that is heap
	touched                      int64        // of that
	unused                       int64        // of golang, that the heap keeps free
	unread, unknown              error        // of smaps, and of the container
	given                        []int64      // limits that the runtime was given
	present                      int64        // the runtime's limit
	broken                       atomic.Pointer[error]
}

func newStage() *stage { return &stage{present: math.MaxInt64} }

func (s *stage) resident() (pressure.Resident, error) {
	r := pressure.Resident{Anonymous: s.anonymous.Load(), Mapped: 1 << 40}
	if err := s.broken.Load(); err != nil {
		return r, *err
	}
	return r, nil
}

// fails lets nothing resident be read any more, while a gauge may be reading it.
func (s *stage) fails(err error) { s.broken.Store(&err) }

func (s *stage) goMemory() int64                    { return s.golang.Load() }
func (s *stage) goNeeds() int64                     { return s.needs }
func (s *stage) goFree() (int64, int64)             { return s.golang.Load(), s.unused }
func (s *stage) heapReady() int64                   { return s.ready.Load() }
func (s *stage) heapResident(uint64) (int64, error) { return s.touched, s.unread }
func (s *stage) limit() int64                       { return s.container.Load() }
func (s *stage) free() (int64, error) {
	return s.container.Load() - s.anonymous.Load() - s.others, s.unknown
}
func (s *stage) stalls() float64 { return s.waiting }
func (s *stage) setGoLimit(bytes int64) int64 {
	before := s.present
	if bytes >= 0 {
		s.present = bytes
		s.given = append(s.given, bytes)
	}
	return before
}

func begun(t *testing.T, s *stage) *watcher {
	t.Helper()
	return begunWith(t, s, Options{})
}

func begunWith(t *testing.T, s *stage, o Options) *watcher {
	t.Helper()
	w, err := start(s, o, takeGoLimit(s.setGoLimit))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.end)
	return w
}

const mib = 1 << 20

// What is outside is what is anonymous and not Go's: mapped files do not count.
func TestOutside(t *testing.T) {
	s := newStage()
	s.anonymous.Store(100 * mib)
	s.golang.Store(30 * mib)
	if got := begun(t, s).outside(); got != 70*mib {
		t.Errorf("%d", got)
	}
}

// Memory of Go that is not resident hides nothing.
func TestUntouchedGoMemoryHidesNothing(t *testing.T) {
	s := newStage()
	s.anonymous.Store(700 * mib)
	s.golang.Store(10100 * mib)
	s.ready.Store(10050 * mib)
	s.touched = 50 * mib
	w := begun(t, s)
	if got := w.outside(); got != 600*mib {
		t.Errorf("%d MiB", got/mib)
	}
	s.golang.Store(100 * mib) // given back
	s.ready.Store(50 * mib)
	if got := w.outside(); got != 600*mib {
		t.Errorf("once it is given back: %d MiB", got/mib)
	}
}

// The price goes up with stalls, and down well below where it went up.
func TestPrice(t *testing.T) {
	w := begun(t, newStage())
	for _, step := range []struct {
		stalls float64
		want   int
	}{{0, 0}, {0.03, 1}, {0.01, 1}, {0.3, 2}, {0.1, 2}, {0.04, 1}, {0.001, 0}} {
		w.price(step.stalls, 0)
		if w.urgency != step.want || w.collector.Policy() != policy.MustParse(urgencies[step.want].policy).New().String() {
			t.Errorf("stalls %v: urgency %d, policy %s; want %d", step.stalls, w.urgency, w.collector.Policy(), step.want)
		}
	}
}

// A policy that the program or the environment chose is not replaced.
func TestPriceLeavesAChosenPolicy(t *testing.T) {
	t.Setenv(gc.PolicyVariable, "growth:1,min=64MiB")
	w := begun(t, newStage())
	if w.price(0.5, 0); w.collector.Policy() != "growth:1,min=64MiB" {
		t.Errorf("policy %s", w.collector.Policy())
	}
}

// What stays is said once, and again when it has doubled, as a leak's does; what falls in between is work in progress.
func TestHeldMemoryIsSaid(t *testing.T) {
	var h heldMemory
	var levels []int64
	review := func(times int, level int64, resting bool) (said int) {
		for range times {
			levels = append(levels, level)
			if bytes, stayed := h.see(level, resting); bytes > 0 {
				if said++; bytes != slices.Min(levels[len(levels)-10:]) || stayed < reportAfter {
					t.Errorf("said %d MiB for %v at %d MiB", bytes/mib, stayed, level/mib)
				}
			}
		}
		return said
	}
	for i, step := range []struct {
		times   int
		level   int64
		resting bool
		want    int
	}{
		{9, 700 * mib, true, 0}, // not yet
		{1, 700 * mib, true, 1},
		{30, 800 * mib, true, 0}, // said
		{1, 10 * mib, true, 0},
		{30, 1500 * mib, true, 1},
		{30, 1500 * mib, false, 0}, // cycles are worth it
		{30, reportLeast - 1, true, 0},
		{10, reportLeast, true, 1}, // from below
		{1, 10 * mib, false, 0},
		{30, 9 * mib, true, 0},
		{30, 17 * mib, true, 0},
		{30, 18 * mib, true, 1}, // a slow leak
		{30, 35 * mib, true, 0},
		{30, 36 * mib, true, 1},
		{1, 10 * mib, false, 0},
		{9, 70 * mib, true, 0},
		{1, 700 * mib, true, 1}, // of which 70 have stayed
		{9, 700 * mib, true, 1},
	} {
		if got := review(step.times, step.level, step.resting); got != step.want {
			t.Errorf("step %d: said %d times, want %d", i, got, step.want)
		}
	}
}

func TestNothingToRead(t *testing.T) {
	s := newStage()
	s.fails(errors.New("no statm"))
	if _, err := start(s, Options{}, takeGoLimit(s.setGoLimit)); err == nil {
		t.Error("no error")
	}
}

// block is memory that the program has mapped itself; a cleanup gives it back.
type block struct{ data []byte }

func newBlock(t *testing.T, size int) *block {
	data, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < size; i += os.Getpagesize() {
		data[i] = 1
	}
	b := &block{data}
	runtime.AddCleanup(b, func(data []byte) { _ = syscall.Munmap(data) }, data)
	return b
}

// A program that maps memory and forgets it stays small, and was not changed.
func TestResidentMemoryStaysLow(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("not known on " + runtime.GOOS)
	}
	defer Start(Options{})()
	w := current()
	const size, total = 4 * mib, 1024 * mib
	var most int64
	catchUp := time.Now().Add(time.Minute) // until then a slow machine's cycles and cleanups may
	for range total / size {
		newBlock(t, size)
		most = max(most, w.outside())
		time.Sleep(2 * time.Millisecond)
		for w.outside() > total/2 && time.Now().Before(catchUp) {
			time.Sleep(time.Millisecond)
		}
	}
	if s := w.collector.Stats(); s.Cycles[policy.TriggerPolicy] == 0 || most > total*3/4 || s.Exposed != 0 {
		t.Errorf("at most %d MiB of %d outside the Go heap: %+v", most/mib, total/mib, s)
	}
}

// A program that imports the package says nothing as long as there is nothing to say, and the environment turns it off.
func TestImport(t *testing.T) {
	for value, want := range map[string]string{
		"": "collector true\nstress false\n", "on": "collector true\nstress false\n",
		"off": "collector false\nstress false\n", "OFF": "collector false\nstress false\n", "0": "collector false\nstress false\n", "no": "collector false\nstress false\n",
	} {
		if out := run(t, "lives", "EAGERGC="+value); out != want {
			t.Errorf("EAGERGC=%s: %q", value, out)
		}
	}
	if out := run(t, "lives", "EAGERGC=stress"); !strings.Contains(out, "collector false\nstress true\n") || strings.Count(out, "tests alone") != 1 {
		t.Errorf("stress: %q", out)
	}
	if out := run(t, "lives", "EAGERGC=of", "EAGERGC_HOST_HARD_MEMORY_LIMIT=2Gib"); strings.Count(out, "cannot be read") != 2 || !strings.Contains(out, "collector true") {
		t.Errorf("typing errors: %q", out)
	}
}

// What the program has set of Go's limit is never changed, and what we have set is put back.
func TestGoMemoryLimitOfTheProgram(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("off on " + runtime.GOOS)
	}
	const container = "EAGERGC_HOST_HARD_MEMORY_LIMIT=600MiB"
	none := fmt.Sprintf("limit %d\n", math.MaxInt64)
	for _, c := range []struct{ child, environment, want string }{
		{"limits", "", fmt.Sprintf("limit %d\n", 300*mib)}, {"none", "", none}, {"stops", "", none + "collector false\n"}, {"leaves", "", "steered true\n" + none}, {"leaves", "off", "steered false\n" + none},
	} {
		t.Run(c.child+c.environment, func(t *testing.T) {
			t.Parallel()
			if out := run(t, c.child, container, "GOMEMLIMIT="+c.environment); out != c.want {
				t.Errorf("%q, want %q", out, c.want)
			}
		})
	}
}

// Options say what the environment does not, one runs at a time, and the end is the end.
func TestStart(t *testing.T) {
	var log safely
	stop := Start(Options{Limit: 1 << 30, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	first := Collector()
	for end := time.Now().Add(time.Minute); !strings.Contains(log.String(), "trigger=explicit") && time.Now().Before(end); {
		first.Collect(policy.TriggerExplicit) // which shares a cycle that the policy has asked for meanwhile
	}
	again := Start(Options{})
	if stop(); Collector() == nil || Collector() == first {
		t.Error("the first one's stop ended the second, or that did not begin")
	}
	again()
	again()
	if run, ticker := Cycles(); Collector() != nil || run != 0 || ticker != 0 {
		t.Error("it has not ended")
	}
	if running.goLimit != nil {
		t.Error("a later start would not read anew what limit Go has")
	}
	for _, want := range []string{`limit="1.00 GiB"`, "trigger=explicit"} { // of the collector, too
		if !strings.Contains(log.String(), want) {
			t.Errorf("log: %s", log.String())
		}
	}
	t.Setenv("EAGERGC", "off")
	if Start(Options{})(); Collector() != nil {
		t.Error("it is off")
	}
}

// safely is a log that others may still write to.
type safely struct {
	sync.Mutex
	text bytes.Buffer
}

func (s *safely) Write(p []byte) (int, error) {
	s.Lock()
	defer s.Unlock()
	return s.text.Write(p)
}

func (s *safely) String() string {
	s.Lock()
	defer s.Unlock()
	return s.text.String()
}

// A stress runs cycles, and ends.
func TestStress(t *testing.T) {
	t.Setenv("EAGERGC", "stress")
	stop := Start(Options{Log: slog.New(slog.DiscardHandler)})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for end := time.Now().Add(20 * time.Second); after.NumGC < before.NumGC+10; runtime.ReadMemStats(&after) {
		if time.Now().After(end) {
			t.Fatal("cycles do not run")
		}
	}
	stop()
	runtime.ReadMemStats(&before)
	time.Sleep(50 * time.Millisecond)
	if runtime.ReadMemStats(&after); after.NumGC > before.NumGC+1 {
		t.Errorf("%d cycles after the end", after.NumGC-before.NumGC)
	}
}

// The price goes up with the stalls, and down only well below where it went up. A
// policy that somebody else has chosen stays.
func TestThePriceFollowsStalls(t *testing.T) {
	w := begun(t, newStage())
	ruleAt := func(i int) string { return policy.MustParse(urgencies[i].policy).New().String() }
	for i, step := range []struct {
		stalls float64
		want   int
	}{{0.0199, 0}, {0.02, 1}, {0.006, 1}, {0.005, 1}, {0.0049, 0}, {0.2, 2}, {0.05, 2}, {0.049, 1}, {0.3, 2}, {0, 0}} {
		w.price(step.stalls, 0)
		if w.urgency != step.want || w.collector.Policy() != ruleAt(step.want) {
			t.Errorf("step %d, stalls of %v: urgency %d with %s, want %d", i, step.stalls, w.urgency, w.collector.Policy(), step.want)
		}
	}
	w.collector.SetPolicy(policy.Spec{}.New())
	if w.price(0.3, 0); w.collector.Policy() != "never" {
		t.Errorf("the program's policy gave way to %s", w.collector.Policy())
	}
}

// A review takes what the host says now: its stalls, and its limit, which is logged.
func TestReviewReadsTheHost(t *testing.T) {
	s := newStage()
	w := begun(t, s)
	s.container.Store(1000 * mib)
	s.waiting = 0.1
	if w.review(time.Now()); w.limit != 1000*mib || w.urgency != 1 {
		t.Errorf("limit %d, urgency %d", w.limit, w.urgency)
	}
}

func TestTheSystemIsThisOne(t *testing.T) {
	t.Setenv("EAGERGC_HOST_HARD_MEMORY_LIMIT", "")
	if n := (system{}).limit(); n != pressure.ContainerLimit() {
		t.Errorf("limit %d; the container's is %d", n, pressure.ContainerLimit())
	}
	t.Setenv("EAGERGC_HOST_HARD_MEMORY_LIMIT", "123MiB")
	if n := (system{}).limit(); n != 123*mib {
		t.Errorf("limit %d", n)
	}
	if n := (system{77 * mib}).limit(); n != 77*mib {
		t.Errorf("limit %d of the options", n)
	}
	if n := (system{1 << 60}).limit(); n != min(1<<60, hostTotal()) { // more than there is would leave nothing for this process
		t.Errorf("limit %d, and %d is all that there is", n, hostTotal())
	}
	t.Setenv("EAGERGC_HOST_HARD_MEMORY_LIMIT", "2Gib") // typing errors take nothing away
	t.Setenv("EAGERGC_HOST_SOFT_MEMORY_LIMIT", "1GiB")
	if n := (system{}).limit(); n != min(1<<30, hostTotal()) {
		t.Errorf("limit %d", n)
	}
	t.Setenv("EAGERGC_HOST_SOFT_MEMORY_LIMIT", "lots")
	if n := (system{}).limit(); n != pressure.ContainerLimit() {
		t.Errorf("limit %d; the container's is %d", n, pressure.ContainerLimit())
	}
	want := 0.0
	if stalls, err := pressure.HostStalls(); err == nil {
		want = stalls
	}
	if got := (system{}).stalls(); math.Abs(got-want) > 0.5 {
		t.Errorf("stalls %v, want %v", got, want)
	}
}

func hostTotal() int64 {
	info, err := pressure.HostMemory()
	if err != nil {
		return math.MaxInt64
	}
	return info.Total
}
