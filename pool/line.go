package pool

import (
	"slices"
	"time"
)

// A turn is a place in the line for the ladder. It is closed when all that were
// before it have left. Nil is no place.
type turn chan struct{}

// lineMax bounds how long an allocation stands in line. When it is over it takes
// its turn although others are before it.
const lineMax = time.Second

// getInLine puts the caller at the end of the line and waits until its turn has
// come. Until leaveLine, blocks that are freed go past the fronts to the core,
// where those in line look first. Otherwise goroutines that allocate fast would
// take everything out of their fronts.
func (p *Pool) getInLine() turn {
	p.bypass.Add(1)
	l := &p.ladder
	t := make(turn)
	l.mu.Lock()
	l.line = append(l.line, t)
	l.waiting.Store(int32(len(l.line)))
	first := len(l.line) == 1
	l.mu.Unlock()
	if first {
		return t
	}
	timeout := time.NewTimer(lineMax)
	defer timeout.Stop()
	select {
	case <-t:
	case <-timeout.C:
	}
	return t
}

// leaveLine gives the turn to the next one.
func (p *Pool) leaveLine(t turn) {
	if t == nil {
		return
	}
	l := &p.ladder
	l.mu.Lock()
	k := slices.Index(l.line, t)
	l.line = slices.Delete(l.line, k, k+1)
	l.waiting.Store(int32(len(l.line)))
	if k == 0 && len(l.line) > 0 {
		close(l.line[0])
	}
	l.mu.Unlock()
	p.bypass.Add(-1)
}
