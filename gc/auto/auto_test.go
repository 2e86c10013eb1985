package auto

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pressure"
)

// The tests start watchers of their own, but for a child of TestImport.
func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		if running != nil {
			<-running.announced // the parent looks for a line in the log
		}
		os.Exit(0)
	}
	Stop()
	m.Run()
}

const childVariable = "EAGERGC_TEST_CHILD"

// A stage is a host that a test sets.
type stage struct {
	anonymous, golang, container atomic.Int64
	others                       int64 // bytes of other processes in the container
	waiting                      float64
	given                        []int64 // limits that the runtime was given
	present                      int64   // the runtime's limit
	broken                       error
}

func newStage() *stage { return &stage{present: math.MaxInt64} }

func (s *stage) resident() (pressure.Resident, error) {
	return pressure.Resident{Anonymous: s.anonymous.Load(), Mapped: 1 << 40}, s.broken
}
func (s *stage) goMemory() int64       { return s.golang.Load() }
func (s *stage) limit() (int64, error) { return s.container.Load(), nil }
func (s *stage) free() (int64, error)  { return s.container.Load() - s.anonymous.Load() - s.others, nil }
func (s *stage) stalls() float64       { return s.waiting }
func (s *stage) goLimit(bytes int64) int64 {
	before := s.present
	if bytes >= 0 {
		s.present = bytes
		s.given = append(s.given, bytes)
	}
	return before
}

func begin(t *testing.T, s *stage) *watcher {
	t.Helper()
	w, err := start(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.stop)
	return w
}

const mib = 1 << 20

// What is outside is what is anonymous and not Go's: mapped files do not count.
func TestOutside(t *testing.T) {
	s := newStage()
	s.anonymous.Store(100 * mib)
	s.golang.Store(30 * mib)
	if got := begin(t, s).outside(); got != 70*mib {
		t.Errorf("%d", got)
	}
}

// The runtime's limit is what memory outside leaves, with room to work, and goes when
// the container's limit goes.
func TestGoMemoryLimitFollows(t *testing.T) {
	s := newStage()
	s.anonymous.Store(100 * mib)
	s.golang.Store(40 * mib)
	w := begin(t, s)
	if len(s.given) != 0 || w.gauge.Sample().Limit != 0 {
		t.Fatalf("no container, yet the runtime was given %d and the gauge %d", s.given, w.gauge.Sample().Limit)
	}
	s.container.Store(1000 * mib)
	w.review()
	if want := int64(950-60) * mib; s.present != want || w.gauge.Sample().Limit != (950-40)*mib {
		t.Errorf("limit of the runtime %d, want %d; of the gauge %d", s.present, want, w.gauge.Sample().Limit)
	}
	s.anonymous.Store(101 * mib)
	if w.review(); len(s.given) != 1 {
		t.Error("a small change has stopped the world")
	}
	s.anonymous.Store(2000 * mib)
	if w.review(); s.present != 50*mib {
		t.Errorf("no room to work: %d", s.present)
	}
	s.container.Store(0)
	if w.review(); s.present != math.MaxInt64 {
		t.Errorf("the container's limit is gone, the runtime's still %d", s.present)
	}
}

func TestGoMemoryLimitOfTheProgramIsRespected(t *testing.T) {
	s := newStage()
	s.present = 123 * mib
	s.container.Store(1000 * mib)
	if begin(t, s).review(); s.present != 123*mib {
		t.Errorf("changed to %d", s.present)
	}
}

// The price goes up with stalls, and down well below where it went up.
func TestPrice(t *testing.T) {
	w := begin(t, newStage())
	for _, step := range []struct {
		stalls float64
		want   int
	}{{0, 0}, {0.03, 1}, {0.01, 1}, {0.3, 2}, {0.1, 2}, {0.04, 1}, {0.001, 0}} {
		w.price(step.stalls, 0)
		if w.urgency != step.want || w.collector.Policy() != gc.MustParse(urgencies[step.want].policy).New().String() {
			t.Errorf("stalls %v: urgency %d, policy %s; want %d", step.stalls, w.urgency, w.collector.Policy(), step.want)
		}
	}
}

// A policy that the program or the environment chose is not replaced.
func TestPriceLeavesAChosenPolicy(t *testing.T) {
	t.Setenv(gc.PolicyVariable, "growth:1,min=64MiB")
	w := begin(t, newStage())
	if w.price(0.5, 0); w.collector.Policy() != "growth:1,min=64MiB" {
		t.Errorf("policy %s", w.collector.Policy())
	}
}

// What stays is logged, each time that cycles become more seldom; what falls in between is work in progress.
func TestHeldMemoryIsLogged(t *testing.T) {
	var w watcher
	for i, step := range []struct {
		bytes           int64
		stayed, resting time.Duration
		want            bool
	}{
		{700 * mib, reportAfter - 1, 4 * time.Second, false}, // not yet
		{700 * mib, reportAfter, 4 * time.Second, true},
		{700 * mib, 2 * reportAfter, 4 * time.Second, false}, // said
		{700 * mib, 3 * reportAfter, 8 * time.Second, true},
		{reportLeast - 1, 4 * reportAfter, 16 * time.Second, false}, // it fell
		{0, 0, 0, false}, // cycles are worth it
		{reportLeast, reportAfter, time.Second, true},
	} {
		if got := w.worthSaying(step.bytes, step.stayed, step.resting); got != step.want {
			t.Errorf("step %d: said %v", i, got)
		}
	}
}

// Much that C's allocator keeps is given back, but not again and again.
func TestTrim(t *testing.T) {
	defer linked.Store(linked.Load())
	var kept int64
	trims := 0
	SetTrim(func() (int64, int64) { return 0, kept }, func() bool { trims++; return true })
	w := begin(t, newStage())
	now := time.Now()
	for _, step := range []struct {
		kept  int64
		after time.Duration
		want  int
	}{{10 * mib, 0, 0}, {100 * mib, 0, 1}, {100 * mib, trimEvery / 2, 1}, {100 * mib, trimEvery, 2}, {40 * mib, 2 * trimEvery, 2}} {
		kept = step.kept
		if w.trim(400*mib, now.Add(step.after)); trims != step.want {
			t.Errorf("%v later, with %d MiB kept: %d trims, want %d", step.after, step.kept/mib, trims, step.want)
		}
	}
}

func TestNothingToRead(t *testing.T) {
	s := newStage()
	s.broken = errors.New("no statm")
	if _, err := start(s); err == nil {
		t.Error("no error")
	}
}

func TestProfiles(t *testing.T) {
	p := profiles{folder: t.TempDir()}
	for range mostProfiles + 3 {
		p.write()
	}
	files, _ := filepath.Glob(filepath.Join(p.folder, "*.heap"))
	if len(files) != mostProfiles {
		t.Errorf("%d profiles", len(files))
	}
	(&profiles{}).write() // off: writes nothing
}

// block is memory that the program has mapped itself; a cleanup gives it back.
type block struct{ data []byte }

func newBlock(t *testing.T, size int) *block {
	data, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < size; i += os.Getpagesize() {
		data[i] = 1
	}
	b := &block{data}
	runtime.AddCleanup(b, func(data []byte) { _ = unix.Munmap(data) }, data)
	return b
}

// A program that maps memory and forgets it stays small, and was not changed.
func TestResidentMemoryStaysLow(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("not known on " + runtime.GOOS)
	}
	w, err := start(system{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.stop()
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
	if s := w.collector.Stats(); s.Cycles[gc.TriggerPolicy] == 0 || most > total*3/4 || s.Exposed != 0 {
		t.Errorf("at most %d MiB of %d outside the Go heap: %+v", most/mib, total/mib, s)
	}
}

// A program that imports the package is told so, and EAGERGC=off turns it off.
func TestImport(t *testing.T) {
	for _, value := range []string{"", "off"} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childVariable+"=1", Variable+"="+value)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if on := strings.Contains(string(out), "eagergc: on"); on == (value == "off") {
			t.Errorf("%s=%s: %s", Variable, value, out)
		}
	}
}

// The price goes up with the stalls, and down only well below where it went up. A
// policy that somebody else has chosen stays.
func TestThePriceFollowsStalls(t *testing.T) {
	w := begin(t, newStage())
	policy := func(i int) string { return gc.MustParse(urgencies[i].policy).New().String() }
	for i, step := range []struct {
		stalls float64
		want   int
	}{{0.0199, 0}, {0.02, 1}, {0.006, 1}, {0.005, 1}, {0.0049, 0}, {0.2, 2}, {0.05, 2}, {0.049, 1}, {0.3, 2}, {0, 0}} {
		w.price(step.stalls, 0)
		if w.urgency != step.want || w.collector.Policy() != policy(step.want) {
			t.Errorf("step %d, stalls of %v: urgency %d with %s, want %d", i, step.stalls, w.urgency, w.collector.Policy(), step.want)
		}
	}
	w.collector.SetPolicy(gc.Spec{}.New())
	if w.price(0.3, 0); w.collector.Policy() != "never" {
		t.Errorf("the program's policy gave way to %s", w.collector.Policy())
	}
}

// A review takes what the host says now: its stalls, and its limit, which is logged.
func TestReviewReadsTheHost(t *testing.T) {
	s := newStage()
	w := begin(t, s)
	s.container.Store(1000 * mib)
	s.waiting = 0.1
	if w.review(); w.limit != 1000*mib || w.urgency != 1 {
		t.Errorf("limit %d, urgency %d", w.limit, w.urgency)
	}
}

func TestTheSystemIsThisOne(t *testing.T) {
	t.Setenv("EAGERGC_HOST_HARD_MEMORY_LIMIT", "123MiB")
	if n, err := (system{}).limit(); n != 123*mib || err != nil {
		t.Errorf("limit %d, %v", n, err)
	}
	t.Setenv("EAGERGC_HOST_HARD_MEMORY_LIMIT", "1000TiB") // there is less
	info, err := pressure.HostMemory()
	if err != nil {
		t.Skip(err)
	}
	if n, err := (system{}).limit(); n != info.Total || err != nil {
		t.Errorf("limit %d of %d, %v", n, info.Total, err)
	}
	t.Setenv("EAGERGC_HOST_HARD_MEMORY_LIMIT", "")
	if n, err := (system{}).limit(); n != pressure.ContainerLimit() || err != nil {
		t.Errorf("limit %d, %v; the container's is %d", n, err, pressure.ContainerLimit())
	}
	want := 0.0
	if stalls, err := pressure.HostStalls(); err == nil {
		want = stalls.Some.Avg10
	}
	if got := (system{}).stalls(); math.Abs(got-want) > 0.5 {
		t.Errorf("stalls %v, want %v", got, want)
	}
}
