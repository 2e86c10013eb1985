package pool

import "time"

// SlotOf says which sizes and streams share a magazine.
var SlotOf = slotOf

// OneCache leaves the pool one cache, so that what a goroutine frees is where it looks next, whatever its stack is.
func (p *Pool) OneCache() {
	p.flush()
	p.caches.all, p.caches.mask = p.caches.all[:1], 0
	p.sizeCaches(p.group.hard.Load())
}

// Later lets time pass for the budget.
func (p *Pool) Later(d time.Duration) { p.group.start = p.group.start.Add(-d) }
