package comparators_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// A program obeys a policy, and does what the lines of a script say.
type program struct {
	policy  policy.Policy
	at      policy.Point // of now
	garbage int64
	found   int64 // by the cycle under way
	start   time.Duration
}

// end ends a cycle of some length.
func (p *program) end(length time.Duration, action policy.Action, freed int64) {
	live := p.at.Sample.Live - freed
	p.garbage -= freed
	p.at.Sample.Live, p.at.LiveAfter, p.at.Allocated, p.at.Freed, p.at.Running = live, live, 0, 0, false
	p.policy.Observe(policy.Cycle{Start: p.start, Duration: length, Action: action, Freed: freed, LiveAfter: live, Limit: p.at.Sample.Limit})
}

// TestRulesByHand: testdata/rules.txt has short programs and what each rule decides in them.
func TestRulesByHand(t *testing.T) {
	file, err := os.ReadFile("testdata/rules.txt")
	if err != nil {
		t.Fatal(err)
	}
	var p *program
	for i, line := range strings.Split(string(file), "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case words[0] == "==":
			p = &program{policy: policy.MustParse(words[1]).New(), at: policy.Point{Cost: time.Millisecond}}
			p.at.Sample.Limit, p.at.Heap = bytes(t, words[2]), bytes(t, words[3])
		default:
			if got := p.do(t, words); got != words[len(words)-1] {
				t.Fatalf("rules.txt:%d: %s: %s", i+1, p.policy, got)
			}
		}
	}
}

// do does what a line says: when, what, how much or how long, what the policy answers.
func (p *program) do(t *testing.T, words []string) string {
	p.at.Now = duration(t, words[0])
	times := 1
	if _, n, many := strings.Cut(words[1], "*"); many {
		times, _ = strconv.Atoi(n)
	}
	answer := ""
	for range times {
		switch what, _, _ := strings.Cut(words[1], "*"); what {
		case "alloc":
			answer = p.ask(policy.Allocation, bytes(t, words[2]), 0)
			p.at.Sample.Live += bytes(t, words[2])
			p.at.Allocated += bytes(t, words[2])
		case "wait":
			answer = p.ask(policy.Sync, 0, duration(t, words[2]))
		case "drop":
			p.garbage += bytes(t, words[2])
			return words[2]
		case "free":
			p.at.Sample.Live -= bytes(t, words[2])
			p.at.Freed += bytes(t, words[2])
			return words[2]
		case "end":
			p.end(duration(t, words[2]), policy.Overlap, p.found)
			return words[2]
		default:
			t.Fatalf("%q?", words)
		}
		if times > 1 && answer != "skip" && answer != words[len(words)-1] {
			return answer
		}
	}
	return answer
}

// ask returns what the policy answers, and obeys. A blocking cycle takes a millisecond.
func (p *program) ask(kind policy.PointKind, request int64, wait time.Duration) string {
	at := p.at
	at.At, at.Request, at.Wait, at.WillBlock = kind, request, wait, wait > 0
	at.Sample.Space, at.Sample.Reserved = pressure.Device(0), at.Sample.Live
	d := p.policy.Decide(at)
	switch d.Action {
	case policy.Block:
		p.start = p.at.Now
		p.end(time.Millisecond, policy.Block, p.garbage)
	case policy.Overlap:
		p.start, p.found, p.at.Running = p.at.Now, p.garbage, true
	}
	return d.Action.String()
}

func bytes(t *testing.T, text string) int64 {
	l, err := pressure.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	return l.Bytes
}

func duration(t *testing.T, text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
