package policy

import "time"

// A correction is by how much longer cycles take than a policy is told.
type correction struct {
	told        time.Duration // at the last decision
	took, meant float64       // decaying sums, ns
}

const keepLength = 0.9 // per cycle: the last ten count

// of corrects what is told about a cycle.
func (s *correction) of(told time.Duration) time.Duration {
	if s.meant <= 0 {
		return told
	}
	return time.Duration(float64(told) * min(max(s.took/s.meant, 0.25), 4))
}

func (s *correction) learn(took time.Duration) {
	s.took = keepLength*s.took + float64(took)
	s.meant = keepLength*s.meant + float64(s.told)
}

// A ceiling is where memory ends, if that is before the limit, in which fragments, other processes and a library's
// own memory are not: the most that was granted is the limit to go by. What is above is asked for beside a cycle. After
// a number of cycles without an end the limit that was told counts again; each time that this proves wrong, after more.
type ceiling struct {
	granted int64 // most live bytes since memory ended last
	ended   bool  // it has
	cycles  int   // since then
	keep    int   // cycles after which the limit is gone by again
}

const (
	ceilingKeep = 256
	ceilingMore = 4 // times as many the next time
)

// see notes what is live. It returns how much is known to be there.
func (c *ceiling) see(live, told int64) int64 {
	c.granted = max(c.granted, live)
	if !c.ended {
		return told
	}
	return min(told, c.granted)
}

// under returns the limit to go by.
func (c *ceiling) under(told int64) int64 {
	if !c.ended || c.cycles >= c.keep {
		return told
	}
	return min(told, c.granted)
}

// learn is told of a cycle. Memory has ended if something did not fit that would have under
// the limit.
func (c *ceiling) learn(done Cycle) {
	if done.Wanted <= 0 || done.Wanted > done.Limit {
		c.cycles++
		return
	}
	if live := done.LiveAfter + done.Freed; live > c.granted || done.Wanted <= c.granted {
		c.granted = live
	}
	if !c.ended {
		c.keep = ceilingKeep
	} else if c.cycles >= c.keep {
		c.keep *= ceilingMore
	}
	c.ended, c.cycles = true, 0
}
