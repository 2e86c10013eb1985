package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// A term is one operation of an expression in postfix form.
type term struct {
	op    byte    // an operator of binary or unary, a letter of quantities, or '#' for a number
	value float64 // of '#'
}

// quantities are what an expression reads at a point. All have no unit.
var quantities = map[byte]string{
	'p': "live bytes with the request / limit",
	'h': "headroom / limit",
	'n': "growth since the last cycle / limit",
	'k': "live bytes after the last cycle / limit",
	'z': "request / limit",
	'w': "expected wait / cost of a cycle",
	'm': "the remembered value",
}

// memories are the kinds of the remembered value. An expression has one.
var memories = []string{"rate", "yield", "most", "share"}

const (
	letters = "phnkzwm"
	binary  = "+-*/<>^v" // < and > give 1 or 0; ^ is the larger one, v the smaller one
	unary   = "r"        // the square root
)

// An expression is a rule: a cycle is due where left is above right.
type expression struct {
	left, right []term
	memory      int
}

func (e *expression) String() string {
	return fmt.Sprintf("%s > %s, m: %s", infix(e.left), infix(e.right), memories[e.memory])
}

func infix(terms []term) string {
	var stack []string
	for _, t := range terms {
		n := len(stack)
		switch {
		case t.op == '#':
			stack = append(stack, fmt.Sprintf("%.3g", t.value))
		case strings.IndexByte(binary, t.op) >= 0:
			a, b := stack[n-2], stack[n-1]
			text := fmt.Sprintf("(%s %c %s)", a, t.op, b)
			switch t.op {
			case '^':
				text = fmt.Sprintf("max(%s, %s)", a, b)
			case 'v':
				text = fmt.Sprintf("min(%s, %s)", a, b)
			}
			stack = append(stack[:n-2], text)
		case t.op == 'r':
			stack[n-1] = "sqrt(" + strings.TrimSuffix(strings.TrimPrefix(stack[n-1], "("), ")") + ")"
		default:
			stack = append(stack, string(t.op))
		}
	}
	return stack[0]
}

// evaluate returns the value of terms. The values of quantities are in the order of letters.
func evaluate(terms []term, values *[len(letters)]float64) float64 {
	var stack [16]float64
	n := 0
	for _, t := range terms {
		switch t.op {
		case '#':
			stack[n] = t.value
			n++
			continue
		case 'r':
			stack[n-1] = math.Sqrt(max(0, stack[n-1]))
			continue
		case '+':
			stack[n-2] += stack[n-1]
		case '-':
			stack[n-2] -= stack[n-1]
		case '*':
			stack[n-2] *= stack[n-1]
		case '/':
			stack[n-2] /= max(1e-9, stack[n-1])
		case '^':
			stack[n-2] = max(stack[n-2], stack[n-1])
		case 'v':
			stack[n-2] = min(stack[n-2], stack[n-1])
		case '<', '>':
			x := 0.0
			if stack[n-2] < stack[n-1] == (t.op == '<') && stack[n-2] != stack[n-1] {
				x = 1
			}
			stack[n-2] = x
		default:
			stack[n] = values[strings.IndexByte(letters, t.op)]
			n++
			continue
		}
		n--
	}
	return stack[0]
}

// parameters are the numbers of random expressions.
var parameters = []float64{0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1, 1.25, 1.5, 2, 3, 5, 10}

// randomTerms returns an expression of at most 2 x depth + 1 levels, with at most two numbers.
func randomTerms(lot *rand.Rand, depth int, numbers *int) []term {
	switch x := lot.Float64(); {
	case depth == 0 || x < 0.25:
		if *numbers > 0 && lot.Float64() < 0.35 {
			*numbers--
			return []term{{'#', parameters[lot.IntN(len(parameters))]}}
		}
		return []term{{op: letters[lot.IntN(len(letters))]}}
	case x < 0.35:
		return append(randomTerms(lot, depth-1, numbers), term{op: 'r'})
	}
	a := randomTerms(lot, depth-1, numbers)
	b := randomTerms(lot, depth-1, numbers)
	ops := binary + "**+^" // more of these
	return append(append(a, b...), term{op: ops[lot.IntN(len(ops))]})
}

func randomExpression(lot *rand.Rand) *expression {
	numbers := 2
	return &expression{randomTerms(lot, 1+lot.IntN(2), &numbers), randomTerms(lot, 1+lot.IntN(2), &numbers), lot.IntN(len(memories))}
}

// mutate returns an expression that differs in one place.
func (e *expression) mutate(lot *rand.Rand) *expression {
	c := &expression{append([]term(nil), e.left...), append([]term(nil), e.right...), e.memory}
	side := &c.left
	if lot.IntN(2) == 0 {
		side = &c.right
	}
	i := lot.IntN(len(*side))
	t := &(*side)[i]
	numbers := 1
	switch {
	case lot.Float64() < 0.1:
		c.memory = lot.IntN(len(memories))
	case t.op == '#':
		t.value *= []float64{0.5, 0.8, 1.25, 2}[lot.IntN(4)]
	case strings.IndexByte(binary, t.op) >= 0:
		t.op = binary[lot.IntN(len(binary))]
	case t.op == 'r':
		*side = append((*side)[:i], (*side)[i+1:]...)
	default:
		grown := randomTerms(lot, 1, &numbers)
		*side = append(append(append([]term(nil), (*side)[:i]...), grown...), (*side)[i+1:]...)
	}
	if c.size() > 24 || c.numbers() > 2 {
		return randomExpression(lot)
	}
	return c
}

func (e *expression) size() int { return len(e.left) + len(e.right) }

func (e *expression) numbers() (n int) {
	for _, t := range append(append([]term(nil), e.left...), e.right...) {
		if t.op == '#' {
			n++
		}
	}
	return n
}

// An expressed is the policy of an expression. It runs cycles beside the program. What does not fit
// waits for a cycle.
type expressed struct {
	*expression

	values [len(letters)]float64
	memory float64
	seen   int64         // net bytes at the begin of the window in which the rate is measured
	since  time.Duration // begin of that window, or of the last cycle
}

func (p *expressed) Decide(at policy.Point) policy.Decision {
	limit := float64(at.Sample.Limit)
	if limit == 0 {
		return policy.Decision{}
	}
	live, g := float64(at.Sample.Live+at.Request), float64(max(1, at.Cost))
	net := at.Allocated + at.Request - at.Freed
	m := p.memory
	switch p.expression.memory {
	case 0, 2: // the bytes allocated in the time of a cycle: smoothed, or the most, with decay
		if d := at.Now - p.since; d >= at.Cost || net < p.seen {
			rate := float64(net-p.seen) / float64(max(1, d))
			if p.expression.memory == 2 {
				p.memory = max(0.98*p.memory, rate)
			} else if net >= p.seen {
				p.memory = 0.8*p.memory + 0.2*rate
			}
			p.since, p.seen = at.Now, net
		}
		m = p.memory * g / limit
	case 1: // the yield of the last cycle
		m /= limit
	case 3: // the share of time that a cycle now would have since the last one
		m = g / float64(max(1, at.Now-p.since))
	}
	p.values = [...]float64{live / limit, 1 - live/limit, float64(at.Sample.Live+at.Request-at.LiveAfter) / limit, float64(at.LiveAfter) / limit, float64(at.Request) / limit, float64(at.Wait) / g, m}
	switch {
	case live > limit:
		return policy.Decision{Action: policy.Block, Reason: "no headroom left"}
	case at.Running:
		return policy.Decision{Wake: at.Sample.Limit + 1, Reason: "cycle under way"}
	case evaluate(p.left, &p.values) > evaluate(p.right, &p.values):
		return policy.Decision{Action: policy.Overlap, Reason: "expression"}
	}
	return policy.Decision{Wake: at.Sample.Live + at.Request + at.Sample.Limit>>9, Reason: "below"}
}

func (p *expressed) Observe(c policy.Cycle) {
	switch p.expression.memory {
	case 1:
		p.memory = float64(c.Freed)
	case 3:
		p.since = c.Start
	}
	p.seen = 0
}

func (p *expressed) String() string { return "expression" }
