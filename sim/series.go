package sim

import (
	"time"

	"github.com/eagergc/eagergc/gc"
)

// A Level is the memory at one moment of a run, on the virtual clock.
type Level struct {
	At      time.Duration
	Live    int64 // bytes
	Garbage int64 // bytes, part of Live
}

// Series returns live and garbage over the virtual time of a logged run. Each
// of the given number of equal slots contributes its first level, its highest
// and its lowest live and its last, so that a plot of it shows every peak.
func (w *Workload) Series(l *Log, elapsed time.Duration, slots int) []Level {
	s := sampler{slot: max(1, elapsed/time.Duration(max(1, slots)))}
	freed := cycleEnds(l)
	var net, dropped, gone int64
	var delay time.Duration
	paused := 0
	for _, o := range w.ops {
		for ; paused < len(l.Pauses) && int64(l.Pauses[paused].Trace) <= o.time; paused++ {
			delay += l.Pauses[paused].Length
		}
		now := time.Duration(o.time) + delay
		for len(freed) > 0 && freed[0].at <= now {
			gone += freed[0].bytes
			s.add(Level{freed[0].at, net - gone, dropped - gone})
			freed = freed[1:]
		}
		switch n := o.arg >> 2; o.arg & 3 {
		case opAlloc:
			net += n
		case opDrop:
			dropped += n
		case opFree:
			net -= n
		}
		s.add(Level{now, net - gone, dropped - gone})
	}
	return s.flush()
}

type freeing struct {
	at    time.Duration
	bytes int64
}

// cycleEnds is when each cycle's yield went: at its end, or at the end of the
// pause it caused where that was longer (the ladder).
func cycleEnds(l *Log) []freeing {
	var all []freeing
	for _, c := range l.Cycles {
		end := c.Start + c.Duration
		if c.Trigger == gc.TriggerRefusal {
			end = c.Start + c.Exposed
		}
		all = append(all, freeing{end, c.Freed})
	}
	return all
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
