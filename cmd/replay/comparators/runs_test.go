package comparators_test

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace/formats/samples"
)

// forms are texts in which each parameter differs from its default once.
var forms = []string{
	"autopacer:hide=20ms,share=0.1", "autopacer:hide=1ms,share=0.3,overlap=true", "rtorch:reserved=0.4,allocated=0.5,reuse=0.6", "rtorch:reserved=0.1,overlap=true",
	"opencl:trigger=30%,high=60%,reset=true", "opencl:trigger=100MiB,high=300MiB", "opencl:trigger=40%,overlap=true", "opencl:trigger=100MiB",
	"cpucontrol:target=20%,min=3%,overlap=false", "v8step:soft=3%,hard=20%", "dotnet:budget=3%", "art:free=30MiB,stop=200MiB", "gomemlimit:handle=64KiB,share=0.2,every=3ms", "gomemlimit:handle=1MiB,share=0",
	"v8:step=1%,hard=20%", "ocaml:ratio=90%", "oxcaml:overhead=40%,speed=400GiB", "cpython:per=50,freeze=1000", "imgproxy:every=5ms", "eve:event=50%", "eve:event=5%", "torchtitan:n=3,overlap=true",
}

// studied are the policies of this package: by name, scaled, and in the other forms.
func studied() (texts []string) {
	all := policy.List()
	for _, info := range all[1+slices.IndexFunc(all, func(i policy.Info) bool { return i.Name == "host" }):] {
		texts = append(texts, info.Name)
		if info.Scaled != "" {
			texts = append(texts, info.Scaled)
		}
	}
	return append(texts, forms...)
}

// An awake policy is asked at each allocation, whatever it says.
type awake struct{ policy.Policy }

func (p awake) Decide(at policy.Point) policy.Decision {
	d := p.Policy.Decide(at)
	d.Wake = 0
	return d
}

// walk asks a policy at random points, between which cycles of its own, of refusals and of Go end. It returns a digest of the answers. Sizes and
// times are round, so that some are equal to the bounds of a rule.
func walk(p policy.Policy) string {
	r, answers := rand.New(rand.NewPCG(1, 2)), sha256.New()
	const tenth = time.Millisecond / 10
	at, start, waits := policy.Point{Cost: time.Millisecond}, time.Duration(0), 0
	for i := range 6000 {
		if i%1000 == 0 { // other limits, with and without a Go heap
			at.Sample.Limit, at.Heap = []int64{1 << 28, 0, 1 << 30}[i/1000%3], int64(i/3000)<<26
		}
		at.Now += time.Duration(r.IntN(20)*(1+i%1000/900*2000)) * tenth
		at.At, at.Request, at.Wait, at.WillBlock = policy.Allocation, 1<<(16+r.IntN(8)), 0, false
		if r.IntN(9) == 0 {
			at.At, at.Request, at.Wait, at.WillBlock = policy.Sync, 0, time.Duration(r.IntN(80)<<(waits/50%2*3))*tenth, true
			waits++
		}
		d := p.Decide(at)
		fmt.Fprintln(answers, d)
		refused := at.Sample.Limit > 0 && at.Sample.Live+at.Request > at.Sample.Limit
		if d.Action == policy.Overlap && !at.Running {
			at.Running, start = true, at.Now
		}
		if d.Action == policy.Block || refused || at.Running && r.IntN(20) == 0 || r.IntN(500) == 0 {
			c := policy.Cycle{Start: at.Now, Duration: time.Duration(r.IntN(90)) * tenth, Action: policy.Block, Freed: at.Sample.Live / 8 * r.Int64N(9) &^ (1<<20 - 1), Limit: at.Sample.Limit}
			switch {
			case refused:
				c.Trigger = policy.TriggerRefusal
			case at.Running:
				c.Start, c.Duration, c.Action = start, at.Now-start, policy.Overlap
			case d.Action == policy.Skip:
				c.Trigger = policy.TriggerNatural
			}
			c.Work, c.Exposed, c.LiveAfter = c.Duration/time.Duration(1+r.IntN(3)), c.Duration/2, at.Sample.Live-c.Freed
			at.Sample.Live, at.LiveAfter, at.Allocated, at.Freed, at.Running = c.LiveAfter, c.LiveAfter, 0, 0, false
			p.Observe(c)
		}
		if r.IntN(9) == 0 { // the program frees some itself
			freed := r.Int64N(at.Sample.Live/16+1) &^ (1<<16 - 1)
			at.Sample.Live, at.Freed = at.Sample.Live-freed, at.Freed+freed
		}
		at.Sample.Live, at.Allocated = at.Sample.Live+at.Request, at.Allocated+at.Request
		at.Sample.Reserved = at.Sample.Live + at.Sample.Live/64
	}
	return fmt.Sprintf("%.4x", answers.Sum(nil))
}

// TestRuns: each rule does the same to a recording as before, and answers the same on a random walk. Wake hides no decision. After a change of
// a rule, -update must change only the lines of that rule in testdata/runs.txt. A digest alone that differs: print the answers in walk.
func TestRuns(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("another processor may round otherwise")
	}
	recorded, err := samples.Open("mlp")
	if err != nil {
		t.Fatal(err)
	}
	w, err := sim.Compile(recorded, sim.SpaceOf(recorded))
	if err != nil {
		t.Fatal(err)
	}
	costs := sim.Config{Limit: w.PeakReachable * 3 / 2, Cost: sim.Cost{Base: 2 * time.Millisecond, Slowdown: 0.25}, Ladder: sim.Ladder{Factor: 2}}
	free, withHeap := costs, costs
	free.Limit, withHeap.Machine = 0, sim.MachineOf(costs.Cost, costs.Ladder)
	withHeap.Machine.Heap = 64 << 20
	var b strings.Builder
	b.WriteString("# policy: cycles, refusals, ms of exposed pause and MB of garbage in the mean\n# under 1.5 times what mlp reaches; without a limit; and with the limit, beside a Go heap of 64 MiB; the answers on a walk.\n")
	for _, text := range studied() {
		spec := policy.MustParse(text)
		fmt.Fprintf(&b, "%s:", spec)
		for _, cfg := range []sim.Config{costs, free, withHeap} {
			r := sim.Run(w, spec.New(), cfg)
			if again := sim.Run(w, awake{spec.New()}, cfg); again != r {
				t.Errorf("%s: Wake hides a decision:\n%+v\n%+v", spec, r, again)
			}
			fmt.Fprintf(&b, " %d, %d, %.3g, %.4g;", r.Collections, r.RefusalCollections, float64(r.ExposedPause)/1e6, r.MeanGarbage/1e6)
		}
		fmt.Fprintln(&b, "", walk(spec.New()))
	}
	const path = "testdata/runs.txt"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(string(file), "\n")
	for i, line := range strings.Split(b.String(), "\n") {
		if i >= len(want) || line != want[i] {
			t.Fatalf("%s:%d: is now\n%s", path, i+1, line)
		}
	}
}
