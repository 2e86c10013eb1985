package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A vectors is the file of conformance vectors of one policy: what it is asked and told, in order, and what it
// answers. A port of the policy to another language that gives the same answers is the same rule. A step is a list of
// numbers, on a line of its own: of a point, [0, those of Point, action, wake], or of a cycle, [1, those of Cycle].
type vectors struct {
	Policy string      `json:"policy"`
	Point  string      `json:"point"` // names of the numbers
	Cycle  string      `json:"cycle"`
	Steps  [][]float64 `json:"steps"`
}

const (
	pointNumbers = "0 now_ns at(0=allocation,1=sync) live reserved limit request wait_ns will_block allocated freed live_after cost_ns work_ns slowdown running cycles | action(0=skip,1=overlap,2=block) wake"
	cycleNumbers = "1 start_ns duration_ns work_ns exposed_ns trigger(0=policy,1=refusal,2=natural,3=explicit) action freed live_after limit wanted"
)

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func ofPoint(p *Point, d Decision) []float64 {
	return []float64{0, float64(p.Now), float64(p.At), float64(p.Sample.Live), float64(p.Sample.Reserved), float64(p.Sample.Limit), float64(p.Request), float64(p.Wait), number(p.WillBlock),
		float64(p.Allocated), float64(p.Freed), float64(p.LiveAfter), float64(p.Cost), float64(p.Work), p.Slowdown, number(p.Running), float64(p.Cycles), float64(d.Action), float64(d.Wake)}
}

func ofCycle(c *Cycle) []float64 {
	return []float64{1, float64(c.Start), float64(c.Duration), float64(c.Work), float64(c.Exposed), float64(c.Trigger), float64(c.Action), float64(c.Freed), float64(c.LiveAfter), float64(c.Limit), float64(c.Wanted)}
}

func toPoint(x []float64) (p Point) {
	p.Now, p.At = time.Duration(x[1]), PointKind(x[2])
	p.Sample.Live, p.Sample.Reserved, p.Sample.Limit = int64(x[3]), int64(x[4]), int64(x[5])
	p.Request, p.Wait, p.WillBlock = int64(x[6]), time.Duration(x[7]), x[8] == 1
	p.Allocated, p.Freed, p.LiveAfter = int64(x[9]), int64(x[10]), int64(x[11])
	p.Cost, p.Work, p.Slowdown, p.Running, p.Cycles = time.Duration(x[12]), time.Duration(x[13]), x[14], x[15] == 1, uint64(x[16])
	return p
}

func toCycle(x []float64) Cycle {
	return Cycle{Start: time.Duration(x[1]), Duration: time.Duration(x[2]), Work: time.Duration(x[3]), Exposed: time.Duration(x[4]),
		Trigger: Trigger(x[5]), Action: Action(x[6]), Freed: int64(x[7]), LiveAfter: int64(x[8]), Limit: int64(x[9]), Wanted: int64(x[10])}
}

// A recorded is a program that obeys a policy, and writes down what both say.
type recorded struct {
	policy Policy
	at     Point // of now
	steps  [][]float64

	garbage, dropped, wake int64
	start, length          time.Duration // of the cycle under way
}

func (r *recorded) ask(kind PointKind, request int64, wait time.Duration) Action {
	p := r.at
	p.At, p.Request, p.Wait, p.WillBlock = kind, request, wait, kind == Sync
	if kind == Allocation && p.Sample.Live+request < r.wake {
		return Skip
	}
	d := r.policy.Decide(p)
	r.steps = append(r.steps, ofPoint(&p, d))
	r.wake = d.Wake
	if d.Action == Overlap && !r.at.Running {
		r.at.Running, r.start, r.dropped = true, r.at.Now, r.garbage
	}
	return d.Action
}

func (r *recorded) end(c Cycle) {
	r.at.Sample.Live -= c.Freed
	r.at.Sample.Reserved = r.at.Sample.Live
	r.garbage -= c.Freed
	r.at.Allocated, r.at.Freed, r.at.LiveAfter, r.at.Running, r.wake = 0, 0, r.at.Sample.Live, false, 0
	r.at.Cycles++
	c.Work, c.LiveAfter, c.Limit = c.Duration/2, r.at.Sample.Live, r.at.Sample.Limit
	r.policy.Observe(c)
	r.steps = append(r.steps, ofCycle(&c))
}

func (r *recorded) settle(until time.Duration) {
	if r.at.Running && until >= r.start+r.length {
		exposed := max(0, r.start+r.length-until)
		r.end(Cycle{Start: r.start, Duration: r.length, Exposed: exposed, Action: Overlap, Freed: r.dropped})
	}
}

// record runs steps of requests and a wait, drawn from a seed; the last third of them without a limit.
func record(p Policy, steps int) [][]float64 {
	draw := rand.New(rand.NewPCG(7, 11))
	r := &recorded{policy: p, length: 2 * ms}
	r.at.Sample.Limit = 600 * miB
	r.at.Cost, r.at.Work = 3*ms/2, ms
	for i := 0; len(r.steps) < steps; i++ {
		if 3*len(r.steps) > 2*steps {
			r.at.Sample.Limit = 0
		}
		for j := range 3 + draw.IntN(10) {
			request := int64(8+draw.IntN(24)) * 1000 * 1000
			if j%4 == 3 {
				request /= 500
			}
			r.settle(r.at.Now)
			block := r.ask(Allocation, request, 0) == Block
			if limit := r.at.Sample.Limit; block || limit > 0 && r.at.Sample.Live+request > limit {
				c := Cycle{Start: r.at.Now, Duration: r.length, Exposed: r.length, Action: Block, Freed: r.garbage}
				if !block {
					c.Trigger, c.Wanted = TriggerRefusal, r.at.Sample.Live+request
				}
				r.at.Now += r.length
				r.end(c)
			}
			r.at.Sample.Live += request
			r.at.Sample.Reserved, r.at.Allocated = r.at.Sample.Live, r.at.Allocated+request
			r.at.Now += time.Duration(50+draw.IntN(400)) * time.Microsecond
			if j%3 == 2 {
				r.garbage += (r.at.Sample.Live - r.garbage) / 2
			}
		}
		if i%16 == 15 {
			r.at.Slowdown = 0.25 - r.at.Slowdown
		}
		r.settle(r.at.Now)
		wait := time.Duration(draw.IntN(4)) * ms
		if r.ask(Sync, 0, wait) == Block {
			r.end(Cycle{Start: r.at.Now, Duration: r.length, Exposed: max(0, r.length-wait), Action: Block, Freed: r.garbage})
		}
		r.at.Now += wait
		r.garbage = r.at.Sample.Live * 9 / 10
	}
	return r.steps
}

// TestVectors replays the conformance vectors of every policy. -update writes them anew.
func TestVectors(t *testing.T) {
	total := int64(0)
	for _, info := range List() {
		t.Run(info.Name, func(t *testing.T) {
			path := filepath.Join("testdata", "vectors", info.Name+".json")
			if *update {
				text := info.Name
				if info.Scaled != "" {
					text = info.Scaled
				}
				steps := map[string]int{"host": 420, "pacer": 260}[info.Name]
				writeVectors(t, path, text, max(45, steps))
			}
			file, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			total += int64(len(file))
			var v vectors
			if err := json.Unmarshal(file, &v); err != nil {
				t.Fatal(err)
			}
			p, cycles := MustParse(v.Policy).New(), 0
			for i, x := range v.Steps {
				if x[0] == 1 {
					p.Observe(toCycle(x))
					continue
				}
				d := p.Decide(toPoint(x))
				if want := x[17:]; float64(d.Action) != want[0] || float64(d.Wake) != want[1] {
					t.Fatalf("step %d: %v, wake %d; want %v, %.0f", i, d.Action, d.Wake, Action(want[0]), want[1])
				}
				if d.Action != Skip {
					cycles++
				}
			}
			if cycles == 0 && info.Name != "never" && info.Name != "gomemlimit" && info.Name != "random" {
				t.Error("nothing is collected")
			}
		})
	}
	if total > 200e3 {
		t.Errorf("%d bytes, want at most 200,000", total)
	}
}

func writeVectors(t *testing.T, path, text string, steps int) {
	p := MustParse(text).New()
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\"policy\": %q,\n\"point\": %q,\n\"cycle\": %q,\n\"steps\": [\n", p, pointNumbers, cycleNumbers)
	for i, x := range record(p, steps) {
		if i > 0 {
			b.WriteString(",\n")
		}
		var words []string
		for _, n := range x {
			words = append(words, formatFloat(n))
		}
		b.WriteString("[" + strings.Join(words, ",") + "]")
	}
	b.WriteString("\n]}\n")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
