package session

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/eagergc/eagergc/gc/policy"
)

// mine is the name of the policy that follows a rule of the page.
const mine = "mine"

// A ruled policy collects beside the program when its rule says so. page/mine/main.go
// is the same as a program.
type ruled struct {
	rule  func(*values) float64 // other than 0: collect
	last  time.Duration         // when the last cycle started
	yield int64                 // bytes that it freed
}

// names are what a rule may speak of, and values what they are at a point.
var names = []string{"live", "limit", "allocated", "yield", "wait", "cost", "since"}

type values [7]float64

func (p *ruled) Decide(at policy.Point) policy.Decision {
	live, limit := float64(at.Sample.Live+at.Request), float64(at.Sample.Limit)
	v := values{live, limit, float64(at.Allocated), float64(p.yield), at.Wait.Seconds(), at.Cost.Seconds(), (at.Now - p.last).Seconds()}
	if !at.Running && p.rule(&v) != 0 {
		return policy.Decision{Action: policy.Overlap, Reason: "the rule"}
	}
	const steps = 500 // of the limit: the rule is asked again at an allocation a step further up
	return policy.Decision{Wake: at.Sample.Live + at.Sample.Limit/steps, Reason: "not yet"}
}

func (p *ruled) Observe(c policy.Cycle) { p.last, p.yield = c.Start, c.Freed }

func (p *ruled) String() string { return mine }

// parseRule reads an expression of Go over names and numbers, such as
// live > 0.8*limit && allocated > 0.1*limit. Errors begin with a column, from 1.
func parseRule(text string) (rule func(*values) float64, err error) {
	p := &parser{text: text}
	p.next()
	defer func() {
		if e, bad := recover().(ruleError); bad {
			rule, err = nil, e
		}
	}()
	e := p.binary(0)
	if p.token != "" {
		p.fail("%q: want an operator, or the end", p.token)
	}
	if !e.truth {
		p.at = 0
		p.fail("a rule says yes or no: want a comparison, such as live > 0.8*limit")
	}
	return e.of, nil
}

// A ruleError is an error in a rule: its column, then the error.
type ruleError string

func (e ruleError) Error() string { return string(e) }

// An expression is a number, or true (1) or false (0).
type expression struct {
	of    func(*values) float64
	truth bool
}

// A parser reads tokens from left to right.
type parser struct {
	text  string
	at    int    // where the token begins
	token string // empty at the end
}

func (p *parser) fail(format string, args ...any) {
	panic(ruleError(fmt.Sprintf("%d: ", utf8.RuneCountInString(p.text[:p.at])+1) + fmt.Sprintf(format, args...)))
}

const digits = "0123456789"

// next reads a token: a number, a name, an operator of one or two characters, or any other
// character.
func (p *parser) next() {
	rest := strings.TrimLeft(p.text[p.at+len(p.token):], " \t\r\n")
	p.at = len(p.text) - len(rest)
	after := func(n int, set string) int { return len(rest) - len(strings.TrimLeft(rest[n:], set)) }
	n := after(0, digits+".")
	switch {
	case n > 0 && n < len(rest) && rest[n]|0x20 == 'e':
		sign := min(after(n+1, "+-"), n+2)
		if end := after(sign, digits); end > sign {
			n = end
		}
	case n > 0:
	case len(rest) > 1 && slices.Contains([]string{"&&", "||", "==", "!=", "<=", ">="}, rest[:2]):
		n = 2
	default:
		if n = after(0, letters); n == 0 {
			_, n = utf8.DecodeRuneInString(rest)
		}
	}
	p.token = rest[:n]
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"

// operand reads what stands on a side of an operator: a comparison where truth, else a number.
func (p *parser) operand(op string, at int, truth bool, read func() expression) func(*values) float64 {
	x := read()
	if x.truth != truth {
		p.at = at
		p.fail("%s is of %s", op, map[bool]string{true: "comparisons", false: "numbers"}[truth])
	}
	return x.of
}

// levels are the operators, those that bind least first. Comparisons are 1 or 0.
var levels = []map[string]func(a, b float64) float64{
	{"||": func(a, b float64) float64 { return max(a, b) }},
	{"&&": func(a, b float64) float64 { return a * b }},
	{
		"==": func(a, b float64) float64 { return truth(a == b) }, "!=": func(a, b float64) float64 { return truth(a != b) },
		"<=": func(a, b float64) float64 { return truth(a <= b) }, ">=": func(a, b float64) float64 { return truth(a >= b) },
		"<": func(a, b float64) float64 { return truth(a < b) }, ">": func(a, b float64) float64 { return truth(a > b) },
	},
	{"+": func(a, b float64) float64 { return a + b }, "-": func(a, b float64) float64 { return a - b }},
	{"*": func(a, b float64) float64 { return a * b }, "/": func(a, b float64) float64 { return a / b }},
}

func truth(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// binary reads operators of a level and of the levels that bind more.
func (p *parser) binary(level int) expression {
	if level == len(levels) {
		return p.unary()
	}
	x := p.binary(level + 1)
	for {
		apply, ok := levels[level][p.token]
		if !ok {
			return x
		}
		op, at, logical := p.token, p.at, level < 2
		left := p.operand(op, at, logical, func() expression { return x })
		p.next()
		right := p.operand(op, at, logical, func() expression { return p.binary(level + 1) })
		x = expression{func(v *values) float64 { return apply(left(v), right(v)) }, level < 3}
	}
}

// unary reads a name, a number, or what stands in parentheses, with ! or - before it.
func (p *parser) unary() expression {
	word, at := p.token, p.at
	if word == "" {
		p.fail("the rule ends here: want a name or a number")
	}
	p.next()
	switch i := slices.Index(names, word); {
	case i >= 0:
		return expression{func(v *values) float64 { return v[i] }, false}
	case word == "(":
		x := p.binary(0)
		if p.token != ")" {
			p.fail("want )")
		}
		p.next()
		return x
	case word == "!":
		of := p.operand(word, at, true, p.unary)
		return expression{func(v *values) float64 { return 1 - of(v) }, true}
	case word == "-":
		of := p.operand(word, at, false, p.unary)
		return expression{func(v *values) float64 { return -of(v) }, false}
	}
	n, err := strconv.ParseFloat(word, 64)
	if err != nil || word[0] > '9' {
		p.at = at
		p.fail("%q is none of %s, and no number", word, strings.Join(names, ", "))
	}
	return expression{func(*values) float64 { return n }, false}
}
