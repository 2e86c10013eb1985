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
			case best < 0 || lost < c.lost(cost, best, -1):
				best, second = p, best
			case second < 0 || lost < c.lost(cost, second, -1):
				second = p
			}
		}
	}
	return best, second, optimum, never
}

// verdict says in a sentence which policy loses the least time at one cost,
// and how that stands to doing nothing, to the runner-up and to the optimum.
func (c *comparison) verdict(cost int) string {
	best, second, optimum, never := c.ranks(cost)
	if best < 0 {
		return c.costName(cost) + ": no policy has finished"
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
	if _, failed := c.worst(cost, best); failed > 0 {
		text += fmt.Sprintf(", but %s allocations fail under it", formatCount(failed))
	}
	return text + "."
}
