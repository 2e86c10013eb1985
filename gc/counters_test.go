package gc

import (
	"bytes"
	"log/slog"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

func counterOf(c *Collector, name string) Counted {
	for _, n := range c.Counters() {
		if n.Name == name {
			return n
		}
	}
	return Counted{}
}

// TestListenCountsWhatLibrariesSay: what was there, what comes, and what goes, by name; and frees what is dead.
func TestListenCountsWhatLibrariesSay(t *testing.T) {
	lib, other := pressure.NewCounter(t.Name()), pressure.NewCounter(t.Name()+"/other")
	lib.Add(1000)
	var out bytes.Buffer
	c := listener(t, Config{Policy: policy.MustParse("never").New(), Log: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	c.Listen()
	c.Listen()
	other.Add(7)
	lib.Sub(1000)
	for range 100 {
		pressure.Own(lib, new([4]*int), 1<<20, func(int) {}, 0)
	}
	if n := counterOf(c, t.Name()); n.Live > 100<<20 || n.String() != t.Name()+": 100.00 MiB in 100 objects" && n.Live == 100<<20 {
		t.Errorf("counted %+v, %v", n, n)
	}
	waitFor(t, time.Minute, func() bool { // what cleanups give back late is no cycle's yield
		pressure.Own(lib, new([4]*int), 1<<20, func(int) {}, 0)
		c.Collect(policy.TriggerExplicit)
		return counterOf(c, t.Name()).Freed > 0
	})
	waitFor(t, time.Minute, func() bool {
		c.Collect(policy.TriggerExplicit)
		return counterOf(c, t.Name()).Live == 0
	})
	c.Collect(policy.TriggerExplicit) // sums agree, once nothing moves
	if n := counterOf(c, t.Name()); n.Objects != 0 {
		t.Errorf("%+v", n)
	}
	if n := counterOf(c, t.Name()+"/other"); n.Live != 7 || n.Objects != 1 || n.Freed != 0 {
		t.Errorf("the other library: %+v", n)
	}
	var all int64
	for _, n := range c.Counters() {
		all += n.Live
	}
	if live := c.Snapshot().Sources[0].Live; live != all {
		t.Errorf("%d bytes live, want %d as of all libraries", live, all)
	}
	if text := c.Diagnose(t.Context(), 0).String(); !strings.Contains(text, t.Name()+"/other: 7 B in 1 object\n") {
		t.Errorf("the diagnosis does not name the library:\n%s", text)
	}
	c.Close()
	if c.Counters() != nil {
		t.Error("it listens after Close")
	}
	if !strings.Contains(out.String(), "libraries."+t.Name()+"/other=7") {
		t.Errorf("the log does not name the library:\n%s", &out)
	}
}

// TestAddStartsCycles as Own does: what a library's cleanups free stays low without anybody else's doing.
func TestAddStartsCycles(t *testing.T) {
	lib := pressure.NewCounter(t.Name())
	c := listener(t, Config{Limit: 64 << 20})
	defer c.Close()
	c.Listen()
	var most int64
	for range 2000 {
		p := new([4]*int)
		lib.Add(1 << 20)
		runtime.AddCleanup(p, func(bytes int64) { lib.Sub(bytes) }, 1<<20)
		for end := time.Now().Add(time.Minute); counterOf(c, t.Name()).Live > 128<<20 && time.Now().Before(end); {
			time.Sleep(time.Millisecond) // a busy machine's cycles and cleanups catch up
		}
		most = max(most, counterOf(c, t.Name()).Live)
	}
	if s := c.Stats(); most > 256<<20 || s.Cycles[policy.TriggerPolicy]+s.Cycles[policy.TriggerRefusal] == 0 {
		t.Errorf("at most %v of %v: %+v", pressure.Bytes(most), pressure.Bytes(2000<<20), s)
	}
}

func listener(t *testing.T, cfg Config) *Collector {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// What libraries count asks the policy as if nothing else were watched, however much a gauge reads of the rest.
func TestAGaugeDoesNotHideWhatLibrariesCount(t *testing.T) {
	lib := pressure.NewCounter(t.Name())
	var at []policy.Point
	c := listener(t, Config{Policy: &scripted{decide: func(p policy.Point) policy.Decision {
		at = append(at, p)
		return policy.Decision{Wake: p.Sample.Live + 10<<20}
	}}})
	c.Listen()
	lib.Add(1)
	var rest atomic.Int64
	rest.Store(1 << 30)
	g := Watch(c, rest.Load)
	defer g.Close()
	rest.Add(1 << 20)
	g.Look()
	c.mu.Lock()
	asked := len(at)
	c.mu.Unlock()
	grown := c.own().live.Load() // other tests' counters are in it
	lib.Add(11 << 20)
	c.mu.Lock()
	defer c.mu.Unlock()
	last := at[len(at)-1]
	if len(at) <= asked || last.Request != 11<<20 || last.Sample.Live != last.LiveAfter+grown || last.LiveAfter < 1<<30 {
		t.Errorf("asked %d times, and then %d; last at %+v: want a library's growth on top of what both had", asked, len(at)-asked, last)
	}
}

// What a library has counted while nobody heard it is found at the next cycle, in its own count and in the sum; what its cycles have given back adds up.
func TestWhatWasMissedOfALibraryIsCounted(t *testing.T) {
	c := newCollector(t, Config{})
	var held int64
	moved := c.join("lib", func() (bytes, objects int64) { return held, 1 })
	held = 10 << 20 // and nobody is told
	c.Collect(policy.TriggerExplicit)
	if live := c.own().live.Load(); live != held {
		t.Errorf("%d bytes are counted of %d", live, held)
	}
	l := c.own().libraries[0]
	for i := range int64(3) {
		held -= 1 << 20
		l.before.Store(l.given.Load())
		moved(-1<<20, nil)
		r := c.newCollection(policy.TriggerExplicit, policy.Decision{}, c.own().gate)
		(*accountWalk)(c.own()).walk(r)
		c.own().gate.yield.Add(-r.batches[0].freed)
		if freed := l.freed.Load(); freed != (i+1)<<20 {
			t.Errorf("%d bytes were given back after %d cycles of 1 MiB each", freed, i+1)
		}
	}
}

// TestCountersAreByName, the largest first.
func TestCountersAreByName(t *testing.T) {
	c := newCollector(t, Config{})
	c.listening = func() {}
	for _, l := range []struct {
		name           string
		bytes, objects int64
		want           int64 // live in all, once it has joined
	}{{"b", 5, 1, 5}, {"a", 8, 2, 13}, {"b", 3, 4, 16}, {"c", 100, 1, 116}, {"one", 1, 1, 117}, {"none", 0, 0, 117}, {"less", -4, 1, 117}} {
		c.join(l.name, func() (int64, int64) { return l.bytes, l.objects })
		if live := c.own().live.Load(); live != l.want {
			t.Errorf("%d bytes live with %s, want %d", live, l.name, l.want)
		}
	}
	for i, l := range c.own().libraries {
		l.freed.Store(int64(1) << i)
		if l.log.last%gaugeIDs != 0 {
			t.Errorf("identities of %s begin at %d", l.name, l.log.last)
		}
	}
	want := []Counted{{"c", 100, 1, 8}, {"a", 8, 2, 2}, {"b", 8, 5, 1 + 4}, {"one", 1, 1, 16}, {"none", 0, 0, 32}, {"less", -4, 1, 64}}
	if got := c.Counters(); !reflect.DeepEqual(got, want) {
		t.Errorf("counters %+v, want %+v", got, want)
	}
	if got := c.counters().String(); got != "libraries=[c=100 a=8 b=8 one=1 none=0 less=-4]" {
		t.Errorf("the log has %s", got)
	}
	for _, l := range c.own().libraries { // or the accounts would not be closed
		c.own().giveBack(l.live.Swap(0))
	}
	c.own().libraries = nil
	for text, n := range map[string]Counted{"x: 1.00 KiB in 1 object": {Name: "x", Live: 1024, Objects: 1}, "y: 0 B in 0 objects": {Name: "y"}, "z: 5 B in 2 objects": {Name: "z", Live: 5, Objects: 2}} {
		if n.String() != text {
			t.Errorf("%q, want %q", n, text)
		}
	}
}

// TestNobodyListensAfterClose, even if it comes while Listen begins.
func TestNobodyListensAfterClose(t *testing.T) {
	quiet(t) // a cycle of the runtime's own reads once more what the libraries hold
	lib := pressure.NewCounter(t.Name())
	for _, beside := range []bool{false, true} {
		c := listener(t, Config{Policy: policy.Spec{}.New()})
		o := c.own()
		if beside {
			listens := make(chan struct{})
			o.mu.Lock()
			go func() { defer close(listens); c.Listen() }()
			waitFor(t, 20*time.Second, func() bool {
				c.mu.Lock()
				defer c.mu.Unlock()
				return c.listening != nil
			})
			c.Close()
			o.mu.Unlock()
			<-listens
		} else {
			c.Listen()
			c.Close()
		}
		before := o.live.Load()
		lib.Add(10)
		if live := o.live.Load(); live != before {
			t.Errorf("beside Listen %v: %d bytes are counted after Close", beside, live-before)
		}
		c.Listen()
		if c.Counters() != nil && !beside {
			t.Error("it listens again")
		}
		lib.Sub(10)
	}
}
