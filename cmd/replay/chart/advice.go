package chart

import (
	"fmt"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/pressure"
)

// Program returns the Go line that follows an advice. It names the policy, because the default
// policy of a collector depends on its memory.
func Program(a *experiment.Advice) string {
	return fmt.Sprintf("collector, err := gc.New(gc.Config{Policy: policy.MustParse(%q).New(), Limit: %d}) // %s", a.Policy, a.Limit, pressure.Bytes(a.Limit).String())
}

// AdviceText returns an advice as a sentence.
func AdviceText(a *experiment.Advice) string {
	c := a.Choice
	pause := "no pause"
	if c.Pauses > 0 {
		pause = "p99 pause " + Duration(c.P99)
	}
	text := fmt.Sprintf("With %s at %s: no refusal, %s, %s of the time lost, %s of one core for the collector", a.Policy, pressure.Bytes(a.Limit).String(), pause, Percent(c.Lost), Percent(c.Core))
	for _, o := range a.Others {
		if o.Policy == "never" && o.Exposed > c.Exposed {
			need := "cannot do as well" + Within(a.Memory)
			if o.Needs > 0 {
				need = "needs " + pressure.Bytes(o.Needs).String() + " to lose as little"
			}
			text += fmt.Sprintf("; never loses %s there, and %s", Percent(o.Lost), need)
		}
	}
	return text + fmt.Sprintf("; below %s nothing helps: that much is reachable.", pressure.Bytes(a.Reachable).String())
}

// Within names the largest limit that was tried.
func Within(memory int64) string {
	if memory == 0 {
		return ", however large the limit"
	}
	return " within " + pressure.Bytes(memory).String()
}

// A Card is an important figure.
type Card struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	About string `json:"about"`
	Mark  string `json:"mark,omitempty"` // colour of its edge
}

// AdviceCards show the limit that one recording needs, at most memory bytes, and the savings at
// that limit.
func (b *Builder) AdviceCards(a *experiment.Advice, memory int64) []Card {
	if a == nil {
		return []Card{{"Limit", "none", fmt.Sprintf("no policy loses under %s%s", Percent(experiment.DefaultLost), Within(memory)), ""}}
	}
	c := a.Choice
	cards := []Card{{"Limit", pressure.Bytes(a.Limit).String(), fmt.Sprintf("the smallest, with %s: no refusal, %s of the time lost, p99 pause %s, %s of one core for the collector",
		a.Policy, Percent(c.Lost), Duration(c.P99), Percent(c.Core)), b.Palette.Mark(a.Policy)}}
	for _, o := range a.Others {
		switch {
		case o.Policy != "never":
		case o.Needs > a.Limit:
			cards = append(cards, Card{"Memory saved, against never collecting early", pressure.Bytes(o.Needs - a.Limit).String(),
				fmt.Sprintf("never needs %s to lose as little; at %s it loses %s", pressure.Bytes(o.Needs).String(), pressure.Bytes(a.Limit).String(), Duration(o.Exposed)), ""})
		case o.Exposed > c.Exposed:
			cards = append(cards, Card{"Time saved, against never collecting early", Duration(o.Exposed - c.Exposed),
				fmt.Sprintf("never is held for %s at %s", Duration(o.Exposed), pressure.Bytes(a.Limit).String()), ""})
		}
	}
	return append(cards, Card{"Below this nothing helps", pressure.Bytes(a.Reachable).String(), "that much is reachable at once, garbage or not", ""})
}
