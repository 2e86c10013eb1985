package gc

import (
	"context"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// Programs with a known cause are in gc/with/malloc, which has a real allocator; here is what decides.
func TestVerdict(t *testing.T) {
	const mib = 1 << 20
	at := func(anonymous, inUse, kept int64) footprint {
		return footprint{resident: pressure.Resident{Anonymous: anonymous * mib, Mapped: math.MaxInt32}, cInUse: inUse * mib, cKept: kept * mib}
	}
	for name, c := range map[string]struct {
		before, after, later footprint
		want                 string
	}{
		"half of it is freed":               {at(400, 390, 5), at(200, 190, 5), at(200, 190, 5), garbageLag},
		"freed, but the allocator keeps it": {at(400, 390, 5), at(400, 190, 205), at(400, 190, 205), garbageLag},
		"kept all along":                    {at(400, 10, 380), at(400, 10, 380), at(400, 10, 380), allocatorRetention},
		"grows":                             {at(400, 390, 5), at(400, 390, 5), at(450, 440, 5), reachableGrowth},
		"grows into what was kept":          {at(400, 100, 295), at(400, 100, 295), at(400, 200, 195), reachableGrowth},
		"grows again after much was freed":  {at(400, 390, 5), at(200, 190, 5), at(260, 250, 5), reachableGrowth},
		"falls further in the window":       {at(400, 390, 5), at(385, 375, 5), at(300, 290, 5), healthy},
		"stays":                             {at(400, 390, 5), at(395, 385, 5), at(396, 386, 5), healthy},
		"small":                             {at(20, 15, 4), at(10, 5, 4), at(12, 7, 4), healthy},
		"freed, no allocator known":         {at(400, -1, 0), at(200, -1, 0), at(200, -1, 0), garbageLag},
	} {
		d := Diagnosis{Verdict: healthy, before: c.before, after: c.after, later: c.later}
		if d.decide(); d.Verdict != c.want {
			t.Errorf("%s: %v (%s), want %v", name, d.Verdict, d.Reason, c.want)
		}
	}
}

func TestDiagnosisNamesWhatIsUnknown(t *testing.T) {
	c, err := New(Config{Policy: policy.Spec{}.New()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	SetAllocatorStats(func() (int64, int64) { return 3 << 20, 5 << 20 })
	if text := c.Diagnose(t.Context(), 0).String(); !strings.Contains(text, "5.00 MiB") {
		t.Errorf("the allocator's figures are missing:\n%s", text)
	}
	allocator.Store(nil)
	if text := c.Diagnose(t.Context(), 0).String(); !strings.Contains(text, "unknown") {
		t.Errorf("an allocator nobody reads is not named:\n%s", text)
	}
}

// TestADiagnosisAsText.
func TestADiagnosisAsText(t *testing.T) {
	f := func(n int64) footprint {
		return footprint{
			resident: pressure.Resident{Anonymous: 100 * n, Mapped: n}, goLive: 2 * n, goKept: 3 * n, goOther: 4 * n, counted: 5 * n, cInUse: 6 * n, cKept: -1,
			libraries: []Counted{{Name: "a", Live: 8 * n, Objects: 1}, {Name: "b", Live: 9 * n, Objects: n}},
		}
	}
	d := Diagnosis{Verdict: "v", Reason: "r.", Next: "n.", before: f(1), after: f(2), later: f(3), growing: []growing{{"\tx f:1\n", 5, 6}, {"\ty g:2\n", 7, 0}}}
	const want = `v
r.
Next: n.

                                             before after cycles        later
resident, of the process alone                100 B        200 B        300 B
  objects in the Go heap                        2 B          4 B          6 B
  free, and kept by the Go runtime              3 B          6 B          9 B
  other of the Go runtime                       4 B          8 B         12 B
  outside Go: counted by the collector          5 B         10 B         15 B
    a                                           8 B         16 B         24 B
    b                                           9 B         18 B         27 B
  outside Go: in use by C's allocator           6 B         12 B         18 B
  outside Go: free, and kept by it          unknown      unknown      unknown
  outside Go: all                              91 B        182 B        273 B
resident, of files and shared                   1 B          2 B          3 B

a: 24 B in 1 object
b: 27 B in 3 objects

grew by 5 B and 6 goroutines:
	x f:1

grew by 7 B and 0 goroutines:
	y g:2
`
	if got := d.String(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestTheBoundsOfAVerdict: each at its bound, and right below it.
func TestTheBoundsOfAVerdict(t *testing.T) {
	const mib = 1 << 20
	at := func(held, kept, goKept int64) footprint {
		return footprint{resident: pressure.Resident{Anonymous: held + kept + goKept}, goKept: goKept, cInUse: -1, cKept: kept}
	}
	for name, c := range map[string]struct {
		before, after, later footprint
		want                 string
	}{
		"freed a fifth":               {at(100*mib, 0, 0), at(80*mib, 0, 0), at(80*mib, 0, 0), garbageLag},
		"freed less":                  {at(100*mib, 0, 0), at(80*mib+1, 0, 0), at(80*mib+1, 0, 0), healthy},
		"freed 16 MiB":                {at(50*mib, 0, 0), at(34*mib, 0, 0), at(34*mib, 0, 0), garbageLag},
		"freed a byte less":           {at(50*mib, 0, 0), at(34*mib+1, 0, 0), at(34*mib+1, 0, 0), healthy},
		"grown by a fiftieth":         {at(500*mib, 0, 0), at(500*mib, 0, 0), at(510*mib, 0, 0), reachableGrowth},
		"grown by less":               {at(500*mib, 0, 0), at(500*mib, 0, 0), at(510*mib-1, 0, 0), healthy},
		"grown by 4 MiB":              {at(50*mib, 0, 0), at(50*mib, 0, 0), at(54*mib, 0, 0), reachableGrowth},
		"grown by a byte less":        {at(50*mib, 0, 0), at(50*mib, 0, 0), at(54*mib-1, 0, 0), healthy},
		"C keeps a fifth":             {at(80*mib, 20*mib, 0), at(80*mib, 20*mib, 0), at(80*mib, 20*mib, 0), allocatorRetention},
		"Go keeps a fifth":            {at(80*mib, 0, 20*mib), at(80*mib, 0, 20*mib), at(80*mib, 0, 20*mib), allocatorRetention},
		"Go kept less afterwards":     {at(80*mib, 0, 20*mib), at(80*mib, 0, 20*mib-1), at(80*mib, 0, 0), healthy},
		"Go keeps it only afterwards": {at(80*mib, 0, 20*mib-1), at(80*mib, 0, 20*mib), at(80*mib, 0, 20*mib), healthy},
	} {
		d := Diagnosis{Verdict: healthy, before: c.before, after: c.after, later: c.later}
		if d.decide(); d.Verdict != c.want {
			t.Errorf("%s: %v (%s), want %v", name, d.Verdict, d.Reason, c.want)
		}
	}
	d := Diagnosis{before: at(95*mib, 0, 5*mib), after: at(60*mib, 7*mib, 6*mib), later: at(63*mib, 0, 0)}
	if d.decide(); d.Reason != "Of 100.00 MiB resident, two cycles freed 35.00 MiB; what is in use grew by 3.00 MiB in the window; Go's allocator kept 6.00 MiB and C's 7.00 MiB." {
		t.Error(d.Reason)
	}
	d = Diagnosis{before: at(60*mib, 0, 0), after: at(70*mib, 0, 0), later: at(65*mib, 0, 0)}
	d.after.cKept = -1
	if d.decide(); d.Reason != "Of 60.00 MiB resident, two cycles freed 0 B; what is in use grew by 0 B in the window; Go's allocator kept 0 B and C's an unknown part (import gc/with/malloc to know it)." {
		t.Error(d.Reason)
	}
	if keptText(0) != "0 B" {
		t.Error(keptText(0))
	}
	for i, c := range []struct {
		f    footprint
		held int64
	}{
		{footprint{goLive: 7}, 7}, // resident memory is not known
		{footprint{goLive: 7, resident: pressure.Resident{Anonymous: 5}}, 5},
		{footprint{goLive: 7, goKept: 3, goOther: 2, resident: pressure.Resident{Anonymous: 20}}, 15},
		{footprint{goLive: 7, cKept: 1, resident: pressure.Resident{Anonymous: 20}}, 19},
		{footprint{goLive: 7, cKept: 6, resident: pressure.Resident{Anonymous: 20}}, 14},
		{footprint{goLive: 7, cKept: 60, resident: pressure.Resident{Anonymous: 20}}, 7},
		{footprint{goLive: 7, cKept: -1, resident: pressure.Resident{Anonymous: 20}}, 20},
	} {
		if got := c.f.held(); got != c.held {
			t.Errorf("footprint %d holds %d, want %d", i, got, c.held)
		}
	}
}

// TestWhatGrewMost: five places at most, by bytes and 8 KiB for each goroutine; what shrank is none.
func TestWhatGrewMost(t *testing.T) {
	before := map[string]growing{"a": {bytes: 100, goroutines: 1}, "b": {bytes: 50}, "c": {goroutines: 5}}
	after := map[string]growing{
		"a": {bytes: 150, goroutines: 1}, "b": {bytes: 40}, "c": {goroutines: 7}, "d": {bytes: 16<<10 + 1}, "e": {goroutines: 2, bytes: 1},
		"f": {bytes: 2}, "g": {bytes: 3}, "h": {bytes: 2},
	}
	want := []growing{{"d", 16<<10 + 1, 0}, {"e", 1, 2}, {"c", 0, 2}, {"a", 50, 0}, {"g", 3, 0}}
	if got := grown(before, after); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := grown(nil, map[string]growing{"f": {bytes: 2}, "h": {bytes: 2}}); got[0].frames != "f" || len(got) != 2 {
		t.Errorf("%+v", got)
	}
}

// TestDiagnoseSeesGrowth in the window, and whose it is: the memory and the goroutines that a function of this test makes.
func TestDiagnoseSeesGrowth(t *testing.T) {
	if r, err := pressure.ReadResident(); err != nil || r.Anonymous == 0 {
		t.Skip("resident memory is not known")
	}
	c := embed(t, Config{Policy: policy.Spec{}.New()})
	stop := make(chan struct{})
	defer close(stop)
	var held [][]byte
	d := c.Diagnose(doneHook{t.Context(), func() { held = holdMore(stop) }}, ms)
	text := d.String()
	if d.Verdict != reachableGrowth || d.Next != nextStep[reachableGrowth] {
		t.Error(text)
	}
	memory, goroutines := false, false
	for _, s := range d.growing {
		if strings.Contains(s.frames, "gc.holdMore") {
			memory = memory || s.bytes >= 4<<20 && strings.Contains(s.frames, "gc.doneHook.Done ")
			goroutines = goroutines || s.goroutines == 20
		}
	}
	if !memory || !goroutines || !strings.Contains(text, "\ngrew by ") || !strings.Contains(text, " and 20 goroutines:\n\t") {
		t.Errorf("what grew is not named:\n%s", text)
	}
	runtime.KeepAlive(held)
}

// A doneHook calls a function when the window of a diagnosis begins.
type doneHook struct {
	context.Context
	begins func()
}

func (h doneHook) Done() <-chan struct{} { h.begins(); return h.Context.Done() }

//go:noinline
func holdMore(stop chan struct{}) (held [][]byte) {
	for range 20 {
		go func() { <-stop }()
	}
	for range 48 {
		block := make([]byte, 1<<20)
		for i := range block {
			block[i] = 1 // so that it is resident
		}
		held = append(held, block)
	}
	return held
}

// TestDiagnoseEndsEarly with its context, and then sees no growth.
func TestDiagnoseEndsEarly(t *testing.T) {
	c := embed(t, Config{Policy: policy.Spec{}.New()})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	soon(t, time.Minute, "a diagnosis whose context is over", func() {
		before := c.Stats().Cycles[policy.TriggerExplicit]
		if d := c.Diagnose(ctx, 24*time.Hour); d.Verdict == "" || len(d.growing) > 0 || c.Stats().Cycles[policy.TriggerExplicit] != before+2 {
			t.Errorf("%v after %+v", d, c.Stats().Cycles)
		}
	})
}

// TestDiagnoseNamesAFinalizerThatBlocks.
func TestDiagnoseNamesAFinalizerThatBlocks(t *testing.T) {
	countsFinalizers(t)
	c := embed(t, Config{Policy: policy.Spec{}.New()})
	blocks := make(chan struct{})
	runtime.SetFinalizer(new(bound), func(*bound) { <-blocks })
	d := c.Diagnose(t.Context(), 0)
	close(blocks)
	if d.Verdict != garbageLag || !strings.HasPrefix(d.Reason, "finalizers or cleanups that are due do not finish: one of them blocks. Of ") || !strings.Contains(d.Next, "runtime.runFinalizers") {
		t.Errorf("%+v", d)
	}
	waitFor(t, 20*time.Second, func() bool { return !readPending().waiting() })
}

// TestAFootprintCountsWhatIsOfTheHost, gauges apart, and has what the runtime says.
func TestAFootprintCountsWhatIsOfTheHost(t *testing.T) {
	c := newOn(newPuppet(), Config{Idle: -1}, policy.Spec{}.New())
	defer c.Close()
	c.NewGate(&level{pressure.Sample{Live: 5}})
	c.NewGate(&level{pressure.Sample{Live: 30}})
	c.NewGate(&level{pressure.Sample{Live: 100, Space: pressure.Device(0)}})
	g := &Gauge{c: c}
	g.level.Store(1000)
	c.NewGate(g)
	f := c.footprint()
	if mapped := pressure.GoMemory(); f.counted != 35 || f.goLive < 1<<10 || f.goLive > mapped || f.goKept < 0 || f.goOther <= 0 || f.goMapped() < mapped-1<<20 || f.goMapped() > mapped+1<<20 || f.cInUse != -1 || f.cKept != -1 {
		t.Errorf("%+v", f)
	}
	SetAllocatorStats(func() (int64, int64) { return 3, 4 })
	defer allocator.Store(nil)
	if f = c.footprint(); f.cInUse != 3 || f.cKept != 4 {
		t.Errorf("%+v", f)
	}
	f.libraries = []Counted{{Name: "a", Live: 7}, {Name: "b", Live: 9}}
	if f.library("b").Live != 9 || f.library("c") != (Counted{}) {
		t.Errorf("%+v", f.libraries)
	}
}
