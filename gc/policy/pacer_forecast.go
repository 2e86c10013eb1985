package policy

// A foreseen amount is what the program is to allocate until a cycle could be over
// that starts at the next opportunity: with less room than that, the next opportunity is
// too late. It is taken from what followed entries at which the program was as it is now.

const occurrences = 8 // how many of them are gone by

// beside is the time that a cycle runs until the program, slowed by it, is there. Its
// differences count.
func beside(time, waited, slow float64) float64 { return time + slow*(time-waited) }

// measure notes what followed the entries for which it is known now, before entry
// head is there: the bytes that were allocated after an entry, its request not counted,
// until a cycle of length g was over that started at the entry after it.
func (h *history) measure(now moment, g, slow float64) {
	here := beside(float64(now.time), float64(now.waited), slow)
	for h.measured = max(h.measured, h.head-remembered); h.measured+2 < h.head; h.measured++ {
		if h.at(h.measured+2).beside(slow)+g >= here {
			return
		}
		e := h.at(h.measured + 1)
		e.followed = max(0, h.at(h.head-1).top()-e.top())
		if e.token != 0 {
			e.like = h.find(&h.known, e.hash)
			h.known.put(e.hash, h.measured+1)
		}
	}
}

// foresee returns what followed the match, or, if that is not known yet, the newest entry like the
// present, and the most of what followed the last few; ok is false if nothing is known.
func (h *history) foresee() (last, most int64, ok bool) {
	if h.match == 0 {
		return 0, 0, false
	}
	crept := h.match - h.matched
	n := 0
	for s, next := h.matched, h.find(&h.known, h.hashes[alike]); n < occurrences && h.kept(s); s, next = next, h.at(next).like {
		if s+crept > h.measured {
			continue
		}
		x := h.at(s + crept).followed
		if n++; n == 1 {
			last = x
		}
		most = max(most, x)
	}
	return last, most, n > 0
}
