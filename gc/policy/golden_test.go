package policy_test

import (
	"cmp"
	"flag"
	"fmt"
	"hash"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

var update = flag.Bool("update", false, "rewrite what testdata holds")

// forms are texts in which each parameter differs from its default once.
var forms = []string{
	"always:overlap=true", "every-sync:n=3,overlap=true", "periodic:3ms,overlap=true", "threshold:0.4,overlap=true", "cudajl:poll=1ms,young=0.3", "cudajl:overlap=true",
	"growth:0.3,min=5%", "growth:2,overlap=false", "sqrt:c=1e-8,min=1%,overlap=false", "sqrt:c=1e-7,waits=true",
	"pacer:share=0.5", "pacer:share=0", "host:price=1e-9,overhead=0%", "host:price=0,overhead=3%", "host:price=1e-7,overhead=10%",
	"host:price=0,overhead=0%", "host:price=1e-12,overhead=0%", "host:price=0,overhead=50%", "pacer:share=1",
	"threshold:0", "growth:0", "sqrt:c=0", "growth:1,min=50%", "sqrt:c=1e-12", "threshold:0.1", "growth:0.25,min=1B", "periodic:1ms",
}

// A shape is a made-up program: steps of allocations that end in a wait.
type shape struct {
	name     string
	steps    int
	objects  int           // of a step
	bytes    int64         // of an object, at least; up to eight times as much
	work     time.Duration // between two objects, in the mean
	wait     time.Duration // at the end of a step
	kept     int           // steps after which an object dies, at most
	byHand   bool          // the program frees half of its objects itself
	bursting bool          // one step in ten has twenty times as many objects
}

// programs are of all kinds: training, large objects, programs that free by themselves, bursts, and one that never waits.
func programs(t *testing.T) (all []*sim.Workload) {
	for seed, s := range []shape{
		{"training", 60, 40, 1 << 20, 50 * time.Microsecond, 3 * time.Millisecond, 1, false, false},
		{"large", 200, 3, 64 << 20, time.Millisecond, 200 * time.Microsecond, 2, false, false},
		{"by hand", 100, 30, 256 << 10, 100 * time.Microsecond, time.Millisecond, 3, true, false},
		{"bursts", 80, 10, 2 << 20, 200 * time.Microsecond, 5 * time.Millisecond, 5, false, true},
		{"no waits", 100, 40, 512 << 10, 80 * time.Microsecond, 0, 2, false, false},
		{"fast", 300, 20, 4 << 20, 5 * time.Microsecond, 20 * time.Microsecond, 1, true, true},
	} {
		w, err := sim.Compile(s.record(uint64(seed)), pressure.Device(0))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, w)
	}
	return all
}

func (s *shape) record(seed uint64) *trace.Trace {
	r := rand.New(rand.NewPCG(seed, 5))
	to := &trace.Trace{Name: s.name}
	ends := make([][]uint64, s.steps+s.kept+1) // by the step after which they die
	now, id := int64(0), uint64(0)
	for step := range s.steps {
		n := s.objects
		if s.bursting && step%10 == 9 {
			n *= 20
		}
		for range n {
			now += int64(r.ExpFloat64() * float64(s.work))
			id++
			to.Record(trace.Event{Time: now, Kind: trace.Alloc, ID: id, Bytes: s.bytes * (1 + r.Int64N(8)), Space: pressure.Device(0)})
			end := step + r.IntN(s.kept+1)
			ends[end] = append(ends[end], id)
		}
		for _, dead := range ends[step] {
			kind := trace.Drop
			if s.byHand && dead%2 == 0 {
				kind = trace.Free
			}
			to.Record(trace.Event{Time: now, Kind: kind, ID: dead, Space: pressure.Device(0)})
		}
		if s.wait > 0 {
			to.Record(trace.Event{Time: now, Kind: trace.Sync, Duration: s.wait, Space: pressure.Device(0)})
			now += int64(s.wait)
		}
	}
	return to
}

// worlds are configs for a program: with a limit, without one, with a limit and a cost that the policy is told wrong, and a machine whose costs
// the policy's collector learns.
func worlds(w *sim.Workload) []sim.Config {
	limit, cost, ladder := w.PeakReachable*3/2, sim.Cost{Base: 2 * time.Millisecond, Slowdown: 0.25}, sim.Ladder{Factor: 2}
	machine := sim.MachineOf(sim.Cost{Base: 5 * time.Millisecond, Slowdown: 0.5}, ladder)
	machine.Cores, machine.Work, machine.Heap, machine.Elastic, machine.Noise = 4, 0.5, 8<<20, true, sim.Noise{0.5, 1, 3}
	return []sim.Config{
		{Limit: limit, Cost: cost, Ladder: ladder}, {Cost: cost, Ladder: ladder},
		{Limit: limit, Cost: sim.Fixed(20 * time.Millisecond), Ladder: ladder, WaitNoise: 0.5, Told: sim.Told{Limit: 1.25, Cost: 0.5}},
		{Limit: limit * 2 / 3 * 6 / 5, Machine: machine, Told: sim.Told{Learned: true}},
	}
}

// A listened policy writes down its answers. If it is awake, it is asked at each allocation, whatever it says.
type listened struct {
	policy.Policy
	hash.Hash
	awake bool
}

func (p *listened) Decide(at policy.Point) policy.Decision {
	d := p.Policy.Decide(at)
	p.Write(append(strconv.AppendInt([]byte{byte(d.Action)}, d.Wake, 16), d.Reason...))
	if p.awake {
		d.Wake = 0
	}
	return d
}

// TestRuns: in long programs every policy answers as it always has, in all its forms together, and Wake hides no decision, but for host's target,
// which goes by the clock. After a change of a rule, -update must change only the line of that rule in testdata/long.
func TestRuns(t *testing.T) {
	var lines []string
	all := programs(t)
	for _, info := range policy.List() {
		sum := fnv.New64a()
		for _, text := range append([]string{info.Name, cmp.Or(info.Scaled, info.Name)}, forms...) {
			if name, _, _ := strings.Cut(text, ":"); name != info.Name {
				continue
			}
			spec := policy.MustParse(text)
			for i, w := range all {
				for k, cfg := range worlds(w) {
					r := sim.Run(w, &listened{spec.New(), sum, false}, cfg)
					if name := spec.String(); i == 0 || i > 3 || strings.HasPrefix(name, "host") && !strings.HasSuffix(name, "overhead=0%") {
						continue
					}
					if again := sim.Run(w, &listened{spec.New(), fnv.New64a(), true}, cfg); again != r {
						t.Errorf("%s on %s, world %d: Wake hides a decision:\n%+v\n%+v", spec, w.Name, k, r, again)
					}
				}
			}
		}
		lines = append(lines, fmt.Sprintf("%s %016x", info.Name, sum.Sum64()))
	}
	golden(t, "testdata/long", lines)
}

// golden wants a file of testdata to have some lines; -update writes it anew.
func golden(t *testing.T, path string, lines []string) {
	if x := 1 + 0x1p-30*float64(min(1, len(os.Args))); x*x-(1+0x1p-29) != 0 {
		t.Skip("this machine rounds a product and a sum once: its answers may differ in the last digit")
	}
	if *update {
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i, line := range read(t, path) {
		if i >= len(lines) || lines[i] != line {
			t.Fatalf("%s:%d: is\n%s, now %q", path, i+1, line, lines[min(i, len(lines)-1)])
		}
	}
}

func read(t *testing.T, path string) []string {
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(file)), "\n")
}

// TestVectors: testdata/vectors.txt has, in order, points and cycles, and the answers of each policy. A policy in any language that gives the same
// answers is the same rule. With -update the answers are written anew; the points stay.
func TestVectors(t *testing.T) {
	const path = "testdata/vectors.txt"
	names := "# host" // comes first
	voices := []policy.Policy{policy.MustParse("host").New()}
	for _, info := range policy.List() {
		if info.Name != "host" {
			voices = append(voices, policy.MustParse(cmp.Or(info.Scaled, info.Name)).New())
			names += " " + voices[len(voices)-1].String()
		}
	}
	lines := read(t, path)
	for i, line := range lines {
		if strings.HasPrefix(line, "# host ") {
			lines[i] = names
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		given, _, _ := strings.Cut(line, " ")
		fields := strings.Split(given, ",")
		n := make([]int64, len(fields))
		for k, f := range fields {
			n[k], _ = strconv.ParseInt(f, 10, 64)
		}
		if n[0] == 1 {
			for _, v := range voices {
				v.Observe(policy.Cycle{
					Start: time.Duration(n[1]), Duration: time.Duration(n[2]), Work: time.Duration(n[3]), Exposed: time.Duration(n[4]),
					Trigger: policy.Trigger(n[5]), Action: policy.Action(n[6]), Freed: n[7], LiveAfter: n[8], Limit: n[9], Wanted: n[10],
				})
			}
			continue
		}
		at := policy.Point{
			Now: time.Duration(n[1]), At: policy.PointKind(n[2]), Sample: pressure.Sample{Live: n[3], Reserved: n[4], Limit: n[5]}, Request: n[6], Wait: time.Duration(n[7]), WillBlock: n[8] == 1,
			Allocated: n[9], Freed: n[10], LiveAfter: n[11], Cost: time.Duration(n[12]), Work: time.Duration(n[13]), Running: n[15] == 1, Cycles: uint64(n[16]),
		}
		at.Slowdown, _ = strconv.ParseFloat(fields[14], 64)
		lines[i] = strings.Join(fields[:17], ",")
		for k, v := range voices {
			d := v.Decide(at)
			if k == 0 {
				lines[i] += fmt.Sprintf(",%d,%d", d.Action, d.Wake)
				continue
			}
			lines[i] += " " + d.Action.String()[:1] + strings.Replace(strconv.FormatInt(d.Wake, 10), strconv.FormatInt(math.MaxInt64, 10), "*", 1)
		}
	}
	golden(t, path, slices.Clone(lines))
}
