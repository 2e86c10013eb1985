package hand_test

import (
	"strings"
	"testing"

	"github.com/eagergc/eagergc/cmd/replay/lab/hand"
	"github.com/eagergc/eagergc/cmd/replay/lab/session/mine"
	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace/formats/samples"
)

// TestTwin holds the policy that the page begins with to what Go's compiler makes of
// the same file.
func TestTwin(t *testing.T) {
	p, err := hand.Parse(mine.Text)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mlp", "gpt2", "serve", "thumb"} {
		tr, err := samples.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		w, err := sim.Compile(tr, sim.SpaceOf(tr))
		if err != nil {
			t.Fatal(err)
		}
		for _, factor := range []int64{11, 15, 40} {
			cfg := sim.Config{Limit: w.PeakReachable * factor / 10, Cost: sim.Fixed(1e7), Ladder: sim.Ladder{Factor: 2}}
			got, want := sim.Run(w, p.New(), cfg), sim.Run(w, new(mine.Mine), cfg)
			if got != want || p.Failed() != nil {
				t.Errorf("%s: got %+v, want %+v, %v", name, got, want, p.Failed())
			}
		}
	}
}

const head = "package p\nimport \"github.com/eagergc/eagergc/gc\"\ntype P struct{ n int64 }\nfunc (p *P) Observe(gc.Cycle) { p.n++ }\nfunc (p *P) String() string { return \"p\" }\n"

// TestErrors have their places, and come before anything runs if they can.
func TestErrors(t *testing.T) {
	for body, want := range map[string]string{
		"func (p *P) Decide(point gc.Point) gc.Decision { return gc.Decision{Wake: 0.5 * 3.1} }":                                          "6:75: cannot use",
		"func (p *P) Decide(point gc.Point) gc.Decision { return gc.Decision{Wake: point.Nothing} }":                                      "6:81: point.Nothing undefined",
		"func (p *P) Decide(point gc.Point) gc.Decision { go p.Observe(gc.Cycle{}); return gc.Decision{} }":                               "6:50: Go does not run here",
		"func (p *P) Decide(point gc.Point) gc.Decision { return gc.Decision{} ":                                                          "expected",
		"func (p *P) Decide(point gc.Point) int64 { return 1 }":                                                                           "no type has the methods",
		"import \"os\"\nfunc (p *P) Decide(point gc.Point) gc.Decision { os.Exit(1); return gc.Decision{} }":                              "imports must appear before",
		"func (p *P) Decide(point gc.Point) gc.Decision { return gc.Decision{Wake: 1 / p.n} }":                                            "6:75: division by zero",
		"func (p *P) Decide(point gc.Point) gc.Decision { for { }; return gc.Decision{} }":                                                "6:54: it takes more than a million steps",
		"func (p *P) f(n int64) int64 { return p.f(n) }\nfunc (p *P) Decide(point gc.Point) gc.Decision { p.f(1); return gc.Decision{} }": "deeper than",
	} {
		p, err := hand.Parse(head + body)
		if err == nil {
			p.New().Decide(gc.Point{})
			err = p.Failed()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}

// TestExtremes: min and max are Go's, of text too.
func TestExtremes(t *testing.T) {
	p, err := hand.Parse(head + `func (p *P) Decide(point gc.Point) gc.Decision {
	return gc.Decision{Wake: max(3, p.n, 2), Reason: min("b", "c", "a")}
}`)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := p.New().Decide(gc.Point{}), (gc.Decision{Wake: 3, Reason: "a"}); got != want || p.Failed() != nil {
		t.Errorf("got %+v, want %+v, %v", got, want, p.Failed())
	}
}

func BenchmarkDecide(b *testing.B) {
	p, err := hand.Parse(mine.Text)
	if err != nil {
		b.Fatal(err)
	}
	policy := p.New()
	for b.Loop() {
		policy.Decide(gc.Point{})
	}
}
