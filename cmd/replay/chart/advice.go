package chart

import (
	"fmt"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pressure"
)

// Program is what to write to follow an advice.
func Program(a *experiment.Advice) string {
	policy := ""
	if a.Policy != gc.DefaultPolicy {
		policy = fmt.Sprintf("Policy: gc.MustParse(%q).New(), ", a.Policy)
	}
	return fmt.Sprintf("collector, err := gc.New(gc.Config{%sLimit: %d}) // %s", policy, a.Limit, pressure.Bytes(a.Limit).String())
}

// AdviceText is an advice in a sentence.
func AdviceText(a *experiment.Advice) string {
	c := a.Choice
	pause := "no pause"
	if c.Pauses > 0 {
		pause = "p99 pause " + pressure.Duration(c.P99)
	}
	text := fmt.Sprintf("With %s at %s: no refusal, %s, %s of the time lost, %s of one core for the collector", a.Policy, pressure.Bytes(a.Limit).String(), pause, pressure.Percent(c.Lost), pressure.Percent(c.Core))
	for _, o := range a.Others {
		if o.Policy == "never" && o.Exposed > c.Exposed {
			need := "cannot do as well"
			if o.Needs > 0 {
				need = "needs " + pressure.Bytes(o.Needs).String() + " to lose as little"
			}
			text += fmt.Sprintf("; never loses %s there, and %s", pressure.Percent(o.Lost), need)
		}
	}
	return text + fmt.Sprintf("; below %s nothing helps: that much is reachable.", pressure.Bytes(a.Reachable).String())
}
