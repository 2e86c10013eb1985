package governor

import "time"

const climbRounds = 3

// ClimbsAgain reports whether a refused allocation climbs the refusal ladder again after that many
// rounds. If the cycles of the last round freed the wanted bytes and the allocation still fails,
// another goroutine has taken them.
func ClimbsAgain(rounds int, freed, wanted int64) bool {
	return rounds < climbRounds && freed >= wanted
}

// A Ladder holds the back-off between collections, which all climbers of a memory share. The zero
// value is ready to use.
type Ladder struct {
	futile int           // collections in a row that freed too little
	cost   time.Duration // duration of the last collection
}

const (
	ladderMax     = 256 * time.Millisecond
	ladderDoubles = 3
)

// Rest returns how long a climber waits for a free before the next collection. If the last one freed
// too little, that is as long as it took. The wait doubles with each further one in a row, up to eight
// times that, and at most 256 ms. So collections take at most a ninth of the time. (java.nio.Bits waits
// 511 ms.)
func (l *Ladder) Rest() time.Duration {
	if l.futile == 0 {
		return 0
	}
	return min(ladderMax, l.cost<<min(l.futile-1, ladderDoubles))
}

// Collected reports a collection: its duration, the bytes that it freed, and the bytes that were
// wanted.
func (l *Ladder) Collected(took time.Duration, freed, wanted int64) {
	l.cost = took
	if l.futile++; freed >= wanted {
		l.futile = 0
	}
}

// NextWait returns the expected length of the next wait at a wait place. It is a moving average in
// which the last wait has weight 1/4. Expected is the result for the wait before; 0 means that
// there was no wait before.
func NextWait(expected, last time.Duration) time.Duration {
	if expected == 0 {
		return last
	}
	return expected + (last-expected)/4
}
