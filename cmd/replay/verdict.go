package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/eagergc/eagergc/sim"
)

// ranks returns the indices of the policy that loses the least time at one cost,
// of the runner-up, of the best optimum and of never; -1 for what there is not.
// Those under which allocations fail come after all others.
func (c *comparison) ranks(cost int) (best, second, optimum, never int) {
	best, second, optimum, never = -1, -1, -1, -1
	for p, name := range c.contenders {
		lost := c.lost(cost, p, -1)
		switch {
		case math.IsNaN(lost):
		case slices.Contains(sim.Optima(), name.String()):
			if optimum < 0 || lost < c.lost(cost, optimum, -1) {
				optimum = p
			}
		default:
			if name.String() == "never" {
				never = p
			}
			switch {
			case best < 0 || c.better(cost, p, best):
				best, second = p, best
			case second < 0 || c.better(cost, p, second):
				second = p
			}
		}
	}
	return best, second, optimum, never
}

// better reports whether p goes before q: without failures first, then by time lost.
func (c *comparison) better(cost, p, q int) bool {
	if a, b := c.failed(cost, p) > 0, c.failed(cost, q) > 0; a != b {
		return b
	}
	return c.lost(cost, p, -1) < c.lost(cost, q, -1)
}

// failed is how many allocations failed where the limit could be met.
func (c *comparison) failed(cost, contender int) (n int) {
	for i := range c.workloads {
		for l := range c.limits {
			if c.possible(i, l) {
				n += c.at(i, l, cost, contender).FailedAllocs
			}
		}
	}
	return n
}

// impossible names the limits that some workload cannot meet, to end a sentence.
func (c *comparison) impossible() (text string) {
	for l, limit := range c.limits {
		for i, w := range c.workloads {
			if !c.possible(i, l) {
				text += fmt.Sprintf("; %s is below the %s that %s keeps reachable and does not count", limit, formatBytes(w.PeakReachable), w.Name)
				break
			}
		}
	}
	return text
}

// verdict says in a sentence which policy loses the least time at one cost,
// and how that stands to doing nothing, to the runner-up and to the optimum.
func (c *comparison) verdict(cost int) string {
	best, second, optimum, never := c.ranks(cost)
	if best < 0 {
		return c.costName(cost) + ": nothing to compare" + c.impossible()
	}
	text := fmt.Sprintf("%s: %s loses least, %s", c.costName(cost), c.contenders[best], lostText(c.lost(cost, best, -1)))
	var others []string
	mention := func(p int) {
		if p >= 0 && p != best {
			others = append(others, fmt.Sprintf("%s %s", c.contenders[p], lostText(c.lost(cost, p, -1))))
		}
	}
	mention(second)
	if never != second {
		mention(never)
	}
	mention(optimum)
	if len(others) > 0 {
		text += " (" + strings.Join(others, ", ") + ")"
	}
	if failed := c.failed(cost, best); failed > 0 {
		text += fmt.Sprintf(", but %s allocations fail under it", formatCount(failed))
	}
	return text + c.impossible() + "."
}
