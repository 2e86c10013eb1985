package sim

// A Lead says how much of a wait is left when pauses came before it, while the device
// worked on: waits are elastic. The zero value takes it that the device had enough to
// do: a pause then shortens the next wait by up to its own length. If a recording says
// how far the device was ahead, a pause that is longer than that makes the wait end
// later. All is ns.
type Lead struct {
	measured bool
	ahead    float64 // by which the program could pause now
	held     float64 // by which it has paused since the last wait
	late     float64 // by which the device is done later than it would have been
}

// Measured says that the device is ahead by d, as a recording tells.
func (l *Lead) Measured(d float64) {
	l.measured, l.ahead = true, d
}

// Pause holds the program for d.
func (l *Lead) Pause(d float64) {
	l.held += d
	if l.measured {
		l.late = max(l.late, l.held-l.ahead)
	}
}

// Late is by how much later the device is done, if the program is held no more.
func (l *Lead) Late() float64 { return l.late }

// Wait returns the rest of a wait of length w. The device's queue is then empty.
func (l *Lead) Wait(w float64) float64 {
	left := max(0, w-l.held+l.late)
	*l = Lead{measured: l.measured}
	return left
}
