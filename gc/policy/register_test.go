package policy

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

// variants are the texts that properties of all policies are tested with: each
// by its name, and again with every toggle and share turned.
func variants() []Spec {
	var specs []Spec
	for _, info := range List() {
		specs = append(specs, MustParse(info.Name))
		if info.Scaled != "" {
			specs = append(specs, MustParse(info.Scaled))
		}
		for _, q := range info.Params {
			if q.Values == boolKind().values {
				specs = append(specs, MustParse(fmt.Sprintf("%s:%s=%t", info.Name, q.Name, q.Default == "false")))
			}
			if q.Values == sizeKind(0).values {
				specs = append(specs, MustParse(info.Name+":"+q.Name+"=1%"))
			}
		}
	}
	return append(specs, MustParse("opencl:trigger=30%,high=60%,reset=true"), MustParse("every-sync:n=3"),
		MustParse("random:0.5"), MustParse("periodic:1ms"), MustParse("threshold:0.1"), MustParse("growth:0.25,min=1B"))
}

// A world is a heap that obeys its policy, so that Points are consistent with
// each other as the collector's and the simulator's are.
type world struct {
	now              time.Duration
	live, garbage    int64
	allocated, freed int64 // since the last cycle
	liveAfter, limit int64
	running          bool
	started, dropped int64 // of the cycle under way: when, and what it will free
	cycles           uint64
	policy           Policy
	wake             int64
}

func (w *world) point(at PointKind, request int64) Point {
	return Point{
		Now: w.now, At: at, Request: request, WillBlock: at == Sync,
		Sample:    pressure.Sample{Live: w.live, Reserved: w.live, Limit: w.limit},
		Allocated: w.allocated, Freed: w.freed, LiveAfter: w.liveAfter,
		Cost: time.Millisecond, Running: w.running, Cycles: w.cycles,
	}
}

// settle ends a cycle that frees bytes.
func (w *world) settle(trigger Trigger, action Action, start, length time.Duration, bytes int64) {
	w.live -= bytes
	w.garbage -= bytes
	w.allocated, w.freed, w.liveAfter, w.running, w.wake = 0, 0, w.live, false, 0
	w.cycles++
	w.policy.Observe(Cycle{Start: start, Duration: length, Trigger: trigger, Action: action, Freed: bytes, LiveAfter: w.live, Limit: w.limit})
}

func (w *world) obey(d Decision) {
	switch {
	case d.Action == Block:
		start := w.now
		w.now += time.Millisecond
		w.settle(TriggerPolicy, Block, start, time.Millisecond, w.garbage)
	case d.Action == Overlap && !w.running:
		w.running, w.started, w.dropped = true, int64(w.now), w.garbage
	}
}

// TestWake drives every policy through random worlds twice: once asked at every
// allocation, once only at those that Wake lets through. Both must do the same, but for host's target,
// which goes by the clock.
func TestWake(t *testing.T) {
	for _, spec := range variants() {
		if spec.String() == "host" {
			spec = MustParse("host:overhead=0%")
		}
		t.Run(spec.String(), func(t *testing.T) {
			check(t, func(r *draw) { testWake(r, spec) })
		})
	}
}

func testWake(r *draw, spec Spec) {
	asked := &world{policy: spec.New(), limit: []int64{0, 1000, 1 << 30, 140e9}[r.IntN(4)]}
	woken := &world{policy: spec.New(), limit: asked.limit}
	unit := max(1000, asked.limit)
	steps := 1 + r.IntN(60)
	for i := range steps {
		gap := time.Duration(r.IntN(301)) * 100 * time.Microsecond
		kind := []string{"alloc", "alloc", "alloc", "drop", "free", "sync", "finish", "natural", "refuse"}[r.IntN(9)]
		share := 0.3 * r.Float64()
		for _, w := range []*world{asked, woken} {
			w.now += gap
			bytes := int64(share * float64(unit))
			switch kind {
			case "alloc":
				p := w.point(Allocation, bytes)
				if w == asked || w.live+bytes >= w.wake {
					d := w.policy.Decide(p)
					w.wake = d.Wake
					w.obey(d)
				}
				w.live += bytes
				w.allocated += bytes
			case "drop":
				w.garbage += min(bytes, w.live-w.garbage)
			case "free":
				bytes = min(bytes, w.live-w.garbage)
				w.live -= bytes
				w.freed += bytes
			case "sync":
				d := w.policy.Decide(w.point(Sync, 0))
				w.wake = d.Wake
				w.obey(d)
			case "finish":
				if w.running {
					w.settle(TriggerPolicy, Overlap, time.Duration(w.started), w.now-time.Duration(w.started), min(w.dropped, w.garbage))
				}
			case "natural":
				w.settle(TriggerNatural, Overlap, w.now, time.Millisecond, w.garbage)
			case "refuse":
				w.settle(TriggerRefusal, Block, w.now, time.Millisecond, w.garbage)
			}
		}
		if asked.live != woken.live || asked.now != woken.now || asked.running != woken.running || asked.cycles != woken.cycles {
			r.Fatalf("step %d (%s): Wake hid a decision: asked %+v, woken %+v", i, kind, asked, woken)
		}
	}
}

// TestAnyPoint asks every policy about points that make no sense together:
// none may panic, allocate, or wake below 0.
func TestAnyPoint(t *testing.T) {
	amount := func(r *draw) int64 { // often an end of the range
		return []int64{0, 1, math.MaxInt64 / 4, r.Int64N(math.MaxInt64 / 4), r.Int64N(1 << r.IntN(62))}[r.IntN(5)]
	}
	for _, spec := range variants() {
		t.Run(spec.String(), func(t *testing.T) {
			check(t, func(r *draw) {
				p := spec.New()
				for range 1 + r.IntN(8) {
					if r.IntN(2) == 0 {
						p.Observe(Cycle{
							Start: time.Duration(amount(r)), Duration: time.Duration(amount(r)),
							Exposed: time.Duration(amount(r)), Freed: amount(r),
							Trigger:   Trigger(r.IntN(4)),
							LiveAfter: amount(r), Limit: amount(r),
						})
					}
					at := Point{
						Now: time.Duration(amount(r)), At: PointKind(r.IntN(2)),
						Sample:  pressure.Sample{Live: amount(r), Reserved: amount(r), Limit: amount(r) * int64(r.IntN(2))},
						Request: amount(r), Wait: time.Duration(amount(r)), WillBlock: (r.IntN(2) == 0),
						Allocated: amount(r), Freed: amount(r), LiveAfter: amount(r),
						Cost: time.Duration(amount(r)), Running: (r.IntN(2) == 0),
					}
					d := p.Decide(at)
					switch {
					case d.Wake < 0 || d.Action > Block || d.Reason == "":
						r.Fatalf("%+v: %+v", at, d)
					case d.Action == Overlap && at.Running:
						r.Fatalf("a second cycle: %+v", d)
					}
				}
				if p.String() != spec.String() {
					r.Fatalf("calls itself %s after a while", p)
				}
			})
		})
	}
}

// TestUnlimited runs every policy without a limit in a program that allocates
// and drops the same block again and again: those that need a limit do
// nothing, the others do not collect more often than they are asked.
func TestUnlimited(t *testing.T) {
	needLimit := map[string]bool{"never": true, "cudajl": true, "threshold": true, "rtorch": true, "opencl": true}
	for _, info := range List() {
		w := &world{policy: MustParse(info.Name).New()}
		points := 0
		for range 2000 {
			w.now += 100 * time.Microsecond
			for _, at := range []PointKind{Allocation, Sync} {
				points++
				if w.running {
					w.settle(TriggerPolicy, Overlap, time.Duration(w.started), 100*time.Microsecond, w.dropped)
				}
				w.obey(w.policy.Decide(w.point(at, 1<<20)))
				if at == Allocation {
					w.live, w.garbage, w.allocated = w.live+1<<20, w.garbage+1<<20, w.allocated+1<<20
				}
			}
		}
		switch {
		case needLimit[info.Name] && w.cycles > 0:
			t.Errorf("%s: %d cycles without a limit", info.Name, w.cycles)
		case !needLimit[info.Name] && info.Name != "gomemlimit" && (w.cycles == 0 || w.cycles > uint64(points)/2):
			t.Errorf("%s: %d cycles at %d points", info.Name, w.cycles, points)
		}
	}
}

// TestZeroValue: a zero policy does the least surprising thing, or at least
// does not panic.
func TestZeroValue(t *testing.T) {
	acts := map[string]bool{"always": true, "cudajl": true, "autopacer": true, "rtorch": true} // their doc comments say so
	for _, r := range builtin {
		p := r.make()
		for i := range time.Duration(100) { // art looks at each 64th
			for _, at := range []Point{alloc(time.Second+i, 990, 1000), wait(2*time.Second+i, 990, 1000), alloc(3*time.Second+i, 0, 0)} {
				if d := p.Decide(at); d.Action != Skip && !acts[r.name] {
					t.Errorf("%s: the zero value answers %+v", r.name, d)
				}
				p.Observe(Cycle{})
			}
		}
	}
}

// TestDecideAllocates: deciding and observing are free of allocation.
func TestDecideAllocates(t *testing.T) {
	for _, spec := range variants() {
		p := spec.New()
		now := time.Duration(0)
		if n := testing.AllocsPerRun(200, func() {
			now += ms
			p.Decide(grow(now, 900*MB, MB, 300*MB, 500*MB, GB))
			p.Decide(wait(now, 900*MB, GB))
			p.Observe(Cycle{Start: now, Duration: ms, Freed: MB, LiveAfter: 500 * MB, Limit: GB})
		}); n != 0 {
			t.Errorf("%s allocates %g times", spec, n)
		}
	}
}

var update = flag.Bool("update", false, "rewrite generated documents")

// TestPoliciesDocument keeps POLICIES.md, whose beginning is generated from Policies. What
// follows on our own rules is written by hand.
func TestPoliciesDocument(t *testing.T) {
	file, err := os.ReadFile("POLICIES.md")
	if err != nil {
		t.Fatal(err)
	}
	const byHand = "\n# Our own rules\n"
	_, rule, ok := strings.Cut(string(file), byHand)
	if !ok {
		t.Fatalf("POLICIES.md has no %q", byHand)
	}
	var b strings.Builder
	b.WriteString("# Policies\n\nTo the end of the parameters, generated by `go test ./gc/policy -run TestPoliciesDocument -update` from `policy.List()`. The comment of each type has the rule, its\nconstants and their source.\n\n")
	b.WriteString("A policy's text is its name, a colon, and parameters: `threshold:0.8`, `growth:0.5,min=1%`. The first parameter may come without its name.\nSome rules have constants made for heaps of megabytes: scaled is their form for a device of gigabytes.\n\n")
	b.WriteString("| policy | collects | rule of | scaled |\n|---|---|---|---|\n")
	for _, info := range List() {
		scaled := info.Scaled
		if scaled != "" {
			scaled = "`" + scaled + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", info.Name, info.Doc, info.Source, scaled)
	}
	b.WriteString("\n## Parameters\n\n| policy | parameter = default: what it sets (what it takes) |\n|---|---|\n")
	for _, info := range List() {
		var params []string
		for _, q := range info.Params {
			params = append(params, fmt.Sprintf("`%s=%s`: %s (%s)", q.Name, q.Default, q.Doc, q.Values))
		}
		if params != nil {
			fmt.Fprintf(&b, "| `%s` | %s |\n", info.Name, strings.Join(params, "<br>"))
		}
	}
	b.WriteString(byHand + rule)
	switch {
	case string(file) == b.String():
	case *update:
		if err := os.WriteFile("POLICIES.md", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Error("POLICIES.md is out of date: run go test ./gc/policy -run TestPoliciesDocument -update")
	}
}

// BenchmarkDecide asks at the allocations and syncs of a training loop near
// its limit; a policy that wants a cycle gets one.
func BenchmarkDecide(b *testing.B) {
	for _, info := range List() {
		b.Run("policy="+info.Name, func(b *testing.B) {
			b.ReportAllocs()
			p := MustParse(info.Name).New()
			at := grow(0, 500*MB, 100*kB, 0, 500*MB, GB)
			for i := 0; b.Loop(); i++ {
				at.Now += 10 * time.Microsecond
				at.At, at.WillBlock = Allocation, false
				if i%64 == 63 {
					at.At, at.WillBlock = Sync, true
				} else {
					at.Sample.Live += at.Request
					at.Allocated += at.Request
				}
				if d := p.Decide(at); d.Action != Skip || at.Sample.Live > at.Sample.Limit {
					p.Observe(Cycle{Start: at.Now, Duration: ms, Freed: at.Allocated, LiveAfter: 500 * MB, Limit: GB})
					at.Sample.Live, at.Allocated = 500*MB, 0
				}
			}
		})
	}
}

// A mine is a policy of one's own.
type mine struct{ name string }

func (*mine) Decide(Point) Decision { return Decision{Reason: "mine"} }
func (*mine) Observe(Cycle)         {}
func (m *mine) String() string      { return m.name }

func TestRegister(t *testing.T) {
	before := len(registered.rows)
	t.Cleanup(func() { registered.rows = registered.rows[:before] })
	Register("mine-2", "does nothing", func() Policy { return &mine{"mine-2"} })
	s := MustParse("mine-2")
	if a, b := s.New(), s.New(); a == b || a.String() != "mine-2" {
		t.Errorf("%v and %v, want two of mine", a, b)
	}
	var names []string
	for _, info := range List() {
		names = append(names, info.Name)
	}
	all := strings.Join(names, ", ")
	if _, err := Parse("mine"); err == nil || err.Error() != `policy: unknown policy "mine" (there are `+all+")" {
		t.Errorf("another name: %v", err)
	}
	if _, err := Parse("mine-2:x=1"); err == nil || err.Error() != `policy: mine-2: unknown parameter "x" (it has none)` {
		t.Errorf("a parameter: %v", err)
	}
	if last := List()[len(List())-1]; last.Name != "mine-2" || last.Doc != "does nothing" {
		t.Errorf("the list ends with %+v", last)
	}
	for _, c := range []struct {
		name, doc string
		fresh     func() Policy
		want      string
	}{
		{"mine-2", "again", func() Policy { return &mine{"mine-2"} }, "taken"},
		{"never", "again", func() Policy { return &mine{"never"} }, "taken"},
		{"Mine", "a capital", func() Policy { return &mine{"Mine"} }, "no name"},
		{"2mine", "a digit first", func() Policy { return &mine{"2mine"} }, "no name"},
		{"my,own", "a comma", func() Policy { return &mine{"my,own"} }, "no name"},
		{"", "nothing", func() Policy { return &mine{} }, "no name"},
		{"other", "another String", func() Policy { return &mine{"mine"} }, "String"},
		{"other", "", func() Policy { return &mine{"other"} }, "documentation"},
		{"other", "no function", nil, "a function"},
		{"other", "nil", func() Policy { return nil }, "returns nil"},
	} {
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.HasPrefix(text, "policy: Register") || !strings.Contains(text, c.want) {
					t.Errorf("%q (%s): panics with %q, want %q in it", c.name, c.doc, text, c.want)
				}
			}()
			Register(c.name, c.doc, c.fresh)
		}()
	}
}

// A draw is a test with random numbers.
type draw struct {
	*testing.T
	*rand.Rand
}

// check runs f with 100 seeds; a failure names its own.
func check(t *testing.T, f func(*draw)) {
	for range 100 {
		seed, done := rand.Uint64(), false
		func() {
			defer func() {
				if !done {
					t.Logf("seed %d", seed)
				}
			}()
			f(&draw{t, rand.New(rand.NewPCG(seed, 0))})
			done = true
		}()
	}
}
