package sim

import "github.com/eagergc/eagergc/gc/policy"

// runEvents is [Run] stepped event by event: the rules of the package comment
// in their plainest form, against which Run is tested. Its results are the same.
func runEvents(w *Workload, p policy.Policy, cfg Config) Result {
	m := newBase(w, p, cfg)
	var at totals
	for _, o := range w.ops {
		n := o.arg >> 2
		switch o.arg & 3 {
		case opAlloc:
			if live := at.net - m.freed + n; live >= m.bar || o.time >= m.deadline {
				m.alloc(o.time, n, &at)
			} else if live > m.peak {
				m.peak = live
			}
			at.gross += n
			at.net += n
			at.allocs++
		case opDrop:
			at.dropped += n
			at.drops++
		case opFree:
			at.net -= n
			at.frees++
		case opSync:
			m.sync(o.time, n, &at)
			at.wait += n
			at.syncs++
		}
	}
	return m.finish(w)
}
