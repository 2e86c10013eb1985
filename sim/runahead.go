package sim

// A Runahead computes the rest of a wait after pauses, in which the device worked on. The zero
// value supposes that the device had enough to do: a pause shortens the next wait by up to its own
// length. If a recording says how far the device was ahead, a longer pause makes the wait end
// later. All times are in ns. It is for one goroutine.
type Runahead struct {
	measured bool
	ahead    float64 // how long the program could pause now
	held     float64 // how long it has paused since the last wait
	late     float64 // how much later the device is done because of pauses
}

// Measured sets how far the device is ahead, as a recording has it.
func (l *Runahead) Measured(d float64) {
	l.measured, l.ahead = true, d
}

// Pause holds the program for d.
func (l *Runahead) Pause(d float64) {
	l.held += d
	if l.measured {
		l.late = max(l.late, l.held-l.ahead)
	}
}

// Late returns how much later the device is done, if the program is held no more.
func (l *Runahead) Late() float64 { return l.late }

// Wait returns the rest of a wait of length w. The device's queue is then empty.
func (l *Runahead) Wait(w float64) float64 {
	left := max(0, w-l.held+l.late)
	*l = Runahead{measured: l.measured}
	return left
}
