package policy

// An Outlook is what a [pacer] goes by: it starts a cycle once Room is less than Guess + Margin. It is
// for pictures and tests.
type Outlook struct {
	Room   int64   // bytes that can be granted until headroom ends, once the request is
	Guess  int64   // bytes that are foreseen until a cycle would be over that starts at the next point; 0 = it goes without; below 0, none is to start early
	Margin int64   // bytes more, to be on the safe side
	Price  float64 // ns of pause that one more freed byte is worth
}

// Outlook returns what p goes by right after it has answered a point with Decide.
func (p *pacer) Outlook(at Point) Outlook {
	at.Cost = p.stretch.of(at.Cost)
	at.Sample.Limit = p.ceiling.under(at.Sample.Limit)
	budget := p.budget(&at)
	return Outlook{
		Room:   budget - granted(&at),
		Guess:  int64(p.guess[p.practice.guess]),
		Margin: int64(marginOf[p.practice.margin] * float64(budget)),
		Price:  p.priced(&at, budget),
	}
}
