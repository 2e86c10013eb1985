package policy

import (
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
)

// others are texts in which each parameter differs from its default once.
var others = []string{
	"always:overlap=true", "every-sync:n=3,overlap=true", "periodic:3ms,overlap=true", "random:0.05,seed=9,overlap=true", "threshold:0.4,overlap=true",
	"cudajl:poll=1ms,young=0.3", "cudajl:overlap=true", "autopacer:hide=20ms,share=0.1", "autopacer:hide=1ms,share=0.3,overlap=true",
	"rtorch:reserved=0.4,allocated=0.5,reuse=0.6", "rtorch:reserved=0.1,overlap=true", "opencl:trigger=30%,high=60%,reset=true", "opencl:trigger=100MiB,high=300MiB", "opencl:trigger=40%,overlap=true",
	"softmax:max=60MiB,overlap=true", "growth:0.3,min=5%", "growth:2,overlap=false", "erlang:min=20MiB,overlap=true", "sqrt:c=1e-8,min=1%,overlap=false", "sqrt:c=1e-7,waits=true",
	"cpucontrol:target=20%,min=3%,overlap=false", "v8step:soft=20MiB,hard=100MiB", "v8step:soft=3%,hard=20%", "dotnet:budget=3%", "art:free=30MiB,stop=200MiB", "art:free=3%,stop=20%",
	"pacer:share=0.5", "pacer:share=0", "host:price=1e-9,overhead=0%", "host:price=0,overhead=3%", "host:price=1e-7,overhead=10%",
	"host:price=0,overhead=0%", "host:price=1e-12,overhead=0%", "host:price=0,overhead=50%", "pacer:share=1",
	"gomemlimit:handle=64KiB,share=0.2,every=3ms", "gomemlimit:handle=1MiB,share=0", "gomemlimit:handle=300kB,share=0.01",
	"random:0", "threshold:0", "growth:0", "sqrt:c=0", "growth:1,min=50%", "erlang:min=30%", "dotnet:budget=10%", "dotnet:budget=1B", "art:free=1B", "softmax:max=1B", "sqrt:c=1e-12",
}

// A crowd is a program in which all happens that a policy may see: a loop of equal steps, requests and waits by chance, one that frees by
// itself, a little or all, one that only grows, one that rests. Limits come, change and go, and memory may end before them; cycles take longer
// than is said, or than headroom lasts, and others run cycles, too. All that the policy answers goes into a sum.
type crowd struct {
	*rand.Rand
	policy Policy
	sum    hash.Hash64
	at     Point // of now
	wake   int64
	text   []byte // of the last answer

	garbage, dropped int64 // bytes; those that the cycle under way will free
	start, length    time.Duration
	ends             float64 // where memory ends, as a share of the limit
}

func (c *crowd) ask(kind PointKind, request int64, wait time.Duration) Action {
	if kind == Allocation && c.at.Sample.Live+request < c.wake && c.IntN(8) > 0 {
		return Skip
	}
	p := c.at
	p.At, p.Request, p.Wait, p.WillBlock = kind, request, wait, wait > 0
	p.Sample.Reserved = p.Sample.Live + int64(c.IntN(3))*10*MB
	d := c.policy.Decide(p)
	c.text = append(binary.LittleEndian.AppendUint64(c.text[:0], uint64(d.Wake)), byte(d.Action))
	_, _ = c.sum.Write(append(c.text, d.Reason...))
	c.wake = d.Wake
	if d.Action == Overlap && !c.at.Running {
		c.at.Running, c.start, c.dropped = true, c.at.Now, c.garbage
	}
	return d.Action
}

// end ends a cycle. Reading a gauge, it may seem to free something else.
func (c *crowd) end(y Cycle) {
	live := max(0, c.at.Sample.Live-y.Freed)
	c.garbage = max(0, c.garbage-y.Freed)
	y.Work, y.LiveAfter, y.Limit = y.Duration*time.Duration(c.IntN(3))/2, live, c.at.Sample.Limit
	c.at.Sample.Live, c.at.LiveAfter, c.at.Allocated, c.at.Freed, c.at.Running, c.wake = live, live, 0, 0, false, 0
	c.at.Cycles++
	c.policy.Observe(y)
}

func (c *crowd) settle() {
	if c.at.Running && c.at.Now >= c.start+c.length {
		late := c.length * time.Duration(c.IntN(8)/7) // it has held somebody at its end
		c.end(Cycle{Start: c.start, Duration: c.length, Exposed: late, Action: Overlap, Freed: c.dropped})
	}
}

func (c *crowd) block(t Trigger, wanted int64, wait time.Duration) {
	exposed := max(0, c.length-wait)
	start := c.at.Now
	c.at.Now += exposed
	c.end(Cycle{Start: start, Duration: c.length, Exposed: exposed, Trigger: t, Action: Block, Freed: c.garbage, Wanted: wanted})
}

func (c *crowd) allocate(request int64) {
	c.settle()
	if c.ask(Allocation, request, 0) == Block {
		c.block(TriggerPolicy, 0, 0)
	}
	if limit := c.at.Sample.Limit; limit > 0 && float64(c.at.Sample.Live+request) > c.ends*float64(limit) {
		c.block(TriggerRefusal, c.at.Sample.Live+request, 0)
	}
	c.at.Sample.Live += request
	c.at.Allocated += request
}

func (c *crowd) wait(length time.Duration) {
	c.settle()
	if c.ask(Sync, 0, length) == Block {
		c.block(TriggerPolicy, 0, length)
	}
	c.at.Now += length
}

// phase is some steps of one kind.
func (c *crowd) phase(kind, steps int) {
	c.at.Sample.Limit = []int64{0, 400, 600, 600, 2000}[c.IntN(5)] * MB
	c.ends = []float64{1, 1, 0.8}[c.IntN(3)]
	c.at.Cost = []time.Duration{0, ms / 2, 2 * ms, 5 * ms, 5 * ms, 60 * ms, 2 * time.Second}[c.IntN(7)]
	c.at.Work = c.at.Cost * time.Duration(c.IntN(3)) / 2
	c.length = time.Duration(1+c.IntN(4000))*time.Microsecond + min(c.at.Cost, time.Duration(c.IntN(100))*ms)
	c.at.Slowdown = []float64{0, 0, 0.25, 1}[c.IntN(4)]
	kept := 1 + int64(c.IntN(4)/3*c.IntN(12)) // of 16
	if steps > 100 {                          // not one cycle in all of it
		c.at.Cost, c.length = 2*time.Second, 2*time.Second
	}
	for range steps {
		switch kind {
		case 0: // a loop
			for i := range 8 {
				c.allocate(int64(i%3+1) * 5 * MB)
				c.at.Now += ms / 2
			}
			c.garbage = c.at.Sample.Live * (16 - kept) / 16
			c.wait(4 * ms)
		case 1: // by chance
			for range c.IntN(12) {
				c.allocate(c.Int64N(1 << (10 + c.IntN(16))))
				c.at.Now += time.Duration(c.Int64N(int64(ms)))
				c.garbage += (c.at.Sample.Live - c.garbage) / (1 + c.Int64N(8))
			}
			c.wait(time.Duration(c.Int64N(int64(8*ms))) * time.Duration(c.IntN(2)))
		case 2: // it frees by itself
			c.allocate(8 * MB)
			bytes := min(c.Int64N(8*MB), c.at.Sample.Live-c.garbage)
			c.at.Sample.Live, c.at.Freed = c.at.Sample.Live-bytes, c.at.Freed+bytes
			c.at.Now += ms
		case 3: // it grows, little by little
			c.allocate(c.Int64N(300 * kB))
			c.at.Now += 100 * time.Microsecond
		case 4: // it rests, and the runtime runs a cycle or two
			c.at.Now += time.Duration(c.Int64N(int64(time.Second))) << (c.IntN(8) / 7 * 8)
			c.wait(0)
			for range 1 + c.IntN(2) {
				c.end(Cycle{Start: c.at.Now, Duration: c.length, Trigger: []Trigger{TriggerNatural, TriggerExplicit}[c.IntN(2)], Action: Overlap, Freed: c.garbage})
			}
		case 5: // it frees all by itself
			for range 3 + c.IntN(20) {
				c.allocate(c.Int64N(4 * MB))
				c.at.Now += time.Duration(c.Int64N(int64(10 * ms)))
			}
			c.at.Freed += c.at.Sample.Live
			c.at.Sample.Live, c.garbage, c.dropped = 0, 0, 0
			if c.IntN(2) == 0 {
				c.wait(ms)
			}
		}
	}
}

// fused reports whether this machine rounds a product and a sum once: its answers may differ in the last digit.
func fused() bool {
	x := 1 + 0x1p-30*float64(min(1, len(os.Args)))
	return x*x-(1+0x1p-29) != 0
}

// TestLong: in long programs every policy answers what it always has. Who changes a rule on purpose looks whether the lines that -update
// changes in testdata/long are those of that rule.
func TestLong(t *testing.T) {
	if fused() {
		t.Skip("rounds otherwise")
	}
	const path = "testdata/long"
	file, err := os.ReadFile(path)
	if err != nil && !*update {
		t.Fatal(err)
	}
	var specs []Spec
	for _, info := range List() {
		specs = append(specs, MustParse(info.Name))
	}
	for _, text := range others {
		specs = append(specs, MustParse(text))
	}
	var sums strings.Builder
	for _, spec := range specs {
		sum := fnv.New64a()
		for seed := range uint64(6) {
			c := &crowd{Rand: rand.New(rand.NewPCG(seed, 17)), policy: spec.New(), sum: sum}
			if seed > 0 {
				c.at.Now, c.at.Sample.Live, c.at.LiveAfter = time.Duration(seed)*ms, int64(seed)*20*MB, int64(seed)*MB
			}
			for i := range 20 {
				c.phase((int(seed)+c.IntN(6)*min(1, i))%6, 10+40*(i%3)+110*(i%10/9))
			}
		}
		line := fmt.Sprintf("%s %016x\n", spec, sum.Sum64())
		if sums.WriteString(line); !*update && !strings.Contains("\n"+string(file), "\n"+line) {
			t.Errorf("%s answers otherwise", spec)
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(sums.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
