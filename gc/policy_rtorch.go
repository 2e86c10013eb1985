package gc

// RTorch is the rule of the R package torch. It acts when the device's cache has
// no block for an allocation, before more memory is taken from the device. While
// less than Reserved of the device is reserved, it does nothing. Otherwise it
// collects: fully if more than Allocated of the device is in use, or more than
// Reuse of what is reserved, else lightly. Go has only one kind of collection,
// so the last two ratios change the reason and nothing else.
//
// The cache gives nothing back until an allocation is refused, so it has
// reserved the most bytes that were ever live. That number counts here unless
// the Sample has a larger one. The device is the limit; without a limit the rule
// does nothing. The zero value
// collects whenever the cache has no room.
//
// Source: src/lantern/src/AllocatorCuda.cpp (should_call_gc),
// R/package.R, mlverse/torch@e4de110c1.
type RTorch struct {
	Reserved  float64 // of the device, 0..1
	Allocated float64 // of the device, 0..1
	Reuse     float64 // of what is reserved, 0..1

	reserved int64 // by the cache: most bytes ever live
	request  int64 // of the allocation that collected
}

func (p *RTorch) params() []Param {
	return []Param{
		bind(&p.Reserved, "reserved", 0.2, numberKind(0, 1), "reserved share of the limit below which nothing happens"),
		bind(&p.Allocated, "allocated", 0.8, numberKind(0, 1), "live share of the limit above which a collection is a full one"),
		bind(&p.Reuse, "reuse", 0.8, numberKind(0, 1), "live share of reserved bytes above which a collection is a full one"),
	}
}

// Decide looks at the cache.
func (p *RTorch) Decide(at Point) Decision {
	p.reserved = max(p.reserved, at.Sample.Reserved, at.Sample.Live)
	live, reserved, limit := float64(at.Sample.Live), float64(p.reserved), float64(at.Sample.Limit)
	switch {
	case at.At != Allocation || granted(at) <= p.reserved:
		return Decision{Wake: p.reserved, Reason: "cache has room"}
	case limit <= 0 || reserved/limit < p.Reserved:
		p.reserved = granted(at)
		return Decision{Wake: p.reserved, Reason: "little reserved"}
	}
	p.request = at.Request
	switch {
	case live/limit > p.Allocated:
		return Decision{Action: Block, Reason: "full: device in use"}
	case live/reserved > p.Reuse:
		return Decision{Action: Block, Reason: "full: cache in use"}
	}
	return Decision{Action: Block, Reason: "light"}
}

// Observe grows the cache if the policy's cycle did not free enough, and
// empties it after a refusal.
func (p *RTorch) Observe(c Cycle) {
	switch c.Trigger {
	case TriggerPolicy:
		p.reserved = max(p.reserved, c.LiveAfter+p.request)
	case TriggerRefusal:
		p.reserved = c.LiveAfter
	}
}

// String returns the text form, such as rtorch or rtorch:reserved=0.5.
func (p *RTorch) String() string { return textOf("rtorch", p.params()) }
