package sim

import "time"

// A Level is the memory at one moment of a run, on the virtual clock.
type Level struct {
	At      time.Duration
	Live    int64 // bytes
	Garbage int64 // bytes, part of Live
}

// Series returns live and garbage over the virtual time of a logged run. The time is cut into equal
// slots. Each slot gives the first, the highest, the lowest and the last level.
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
		for len(slowed) > 0 && slowed[0].Trace <= time.Duration(o.time) {
			delay += slowed[0].Length
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
	slot time.Duration
	out  []Level
	now  []Level // those of the present slot; empty before its first
}

func (s *sampler) add(x Level) {
	if len(s.now) > 0 && x.At/s.slot != s.now[0].At/s.slot {
		s.flush()
	}
	if len(s.now) == 0 {
		s.now = append(s.now, x, x, x, x)
	}
	if x.Live > s.now[1].Live {
		s.now[1] = x
	}
	if x.Live < s.now[2].Live {
		s.now[2] = x
	}
	s.now[3] = x
}

func (s *sampler) flush() []Level {
	if len(s.now) > 0 && s.now[2].At < s.now[1].At {
		s.now[1], s.now[2] = s.now[2], s.now[1]
	}
	for _, x := range s.now {
		if n := len(s.out); n == 0 || s.out[n-1] != x {
			s.out = append(s.out, x)
		}
	}
	s.now = s.now[:0]
	return s.out
}
