package sim

import "time"

// A Level is the memory at one moment of a run, on the virtual clock.
type Level struct {
	At      time.Duration
	Live    int64 // bytes
	Garbage int64 // bytes, part of Live
}

// Series returns live and garbage over the virtual time of a logged run. The time
// is cut into equal slots. Each gives its first level, those with the most and
// the least live, and its last, so that a plot shows every peak.
func (w *Workload) Series(l *Log, elapsed time.Duration, slots int) []Level {
	s := sampler{slot: max(1, elapsed/time.Duration(max(1, slots)))}
	cycles, pauses, slowed := l.Cycles, l.Pauses, l.slowed
	var net, dropped, freed, seq int64
	var delay time.Duration
	for _, o := range w.ops {
		n := o.arg >> 2
		for len(pauses) > 0 && pauses[0].seq == seq && pauses[0].Trace <= time.Duration(o.time) {
			s.add(Level{pauses[0].At, net - freed, dropped - freed})
			delay += pauses[0].Length
			pauses = pauses[1:]
		}
		for len(slowed) > 0 && slowed[0].trace <= time.Duration(o.time) {
			delay += slowed[0].length
			slowed = slowed[1:]
		}
		for len(cycles) > 0 && cycles[0].seq == seq {
			freed += cycles[0].Freed
			cycles = cycles[1:]
		}
		switch o.arg & 3 {
		case opAlloc:
			net += n
		case opDrop:
			dropped += n
		case opFree:
			net -= n
		}
		seq++
		s.add(Level{time.Duration(o.time) + delay, net - freed, dropped - freed})
	}
	return s.flush()
}

// A sampler keeps the first, highest, lowest and last level of each slot.
type sampler struct {
	slot                   time.Duration
	out                    []Level
	any                    bool
	first, high, low, last Level
}

func (s *sampler) add(x Level) {
	if s.any && x.At/s.slot != s.first.At/s.slot {
		s.flush()
	}
	if !s.any {
		s.any, s.first, s.high, s.low = true, x, x, x
	}
	if x.Live > s.high.Live {
		s.high = x
	}
	if x.Live < s.low.Live {
		s.low = x
	}
	s.last = x
}

func (s *sampler) flush() []Level {
	if !s.any {
		return s.out
	}
	s.any = false
	a, b := s.high, s.low
	if b.At < a.At {
		a, b = b, a
	}
	for _, x := range []Level{s.first, a, b, s.last} {
		if n := len(s.out); n == 0 || s.out[n-1] != x {
			s.out = append(s.out, x)
		}
	}
	return s.out
}
