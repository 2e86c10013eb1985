package comparators

import (
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/gc/policy/param"
)

// rtorch is the rule of the R package torch. It acts when the device's cache has no block for an
// allocation, before more memory is taken from the device. While less than Reserved of the device
// is reserved, it does nothing. Otherwise it collects: fully if more than Allocated of the device
// is in use, or more than Reuse of the reserved bytes, else lightly. Go has only one kind of
// collection, so the last two ratios change the reason and nothing else.
//
// The cache takes memory in segments: 2 MiB for a request up to 1 MiB, 20 MiB for one below 10 MiB,
// else the request rounded up to 2 MiB. It gives none back until an allocation is refused. So the
// rule asks once for a new segment, not once for every new maximum of live bytes. Fragments are not
// modelled: a request fits as long as live bytes fit in the segments. The Sample's reserved bytes
// count if they are more. The device is the limit; without a limit the rule does nothing. Each of
// its cycles is a full one, as Go has no light ones. The zero value collects whenever the cache has
// no room.
//
// Source: src/lantern/src/AllocatorCuda.cpp (should_call_gc), R/package.R, mlverse/torch@e4de110c1;
// segments: c10/cuda/CUDACachingAllocator.cpp, pytorch.
type rtorch struct {
	blocking
	Reserved  float64 // of the device, 0..1
	Allocated float64 // of the device, 0..1
	Reuse     float64 // of the reserved bytes, 0..1

	reserved int64 // by the cache, in segments
	request  int64 // of the allocation that collected
}

const (
	rtorchSmall int64 = 2 * miB  // a segment for requests up to half of it
	rtorchLarge int64 = 20 * miB // a segment for those below half of it
)

func (p *rtorch) Params() []param.Param {
	return []param.Param{
		param.Bind(&p.Reserved, "reserved", 0.2, param.Number(0, 1), "reserved share of the limit below which nothing happens"),
		param.Bind(&p.Allocated, "allocated", 0.8, param.Number(0, 1), "live share of the limit above which a collection is a full one"),
		param.Bind(&p.Reuse, "reuse", 0.8, param.Number(0, 1), "live share of reserved bytes above which a collection is a full one"),
		param.Overlap(&p.Overlap),
	}
}

// Decide compares the request with the room in the cache.
func (p *rtorch) Decide(at policy.Point) policy.Decision {
	p.reserved = max(p.reserved, at.Sample.Reserved, at.Sample.Live)
	live, reserved, limit := float64(at.Sample.Live), float64(p.reserved), float64(at.Sample.Limit)
	switch {
	case at.At != policy.Allocation || granted(&at) <= p.reserved:
		return policy.Decision{Wake: p.reserved, Reason: "cache has room"}
	case limit <= 0 || reserved/limit < p.Reserved:
		p.grow(granted(&at), at.Request)
		return policy.Decision{Wake: p.reserved, Reason: "little reserved"}
	}
	p.request = at.Request
	switch {
	case live/limit > p.Allocated:
		return policy.Decision{Action: p.action(at), Reason: "full: device in use"}
	case live/reserved > p.Reuse:
		return policy.Decision{Action: p.action(at), Reason: "full: cache in use"}
	}
	return policy.Decision{Action: p.action(at), Reason: "light"}
}

// grow takes segments for a request until the live bytes fit.
func (p *rtorch) grow(live, request int64) {
	if live <= p.reserved {
		return
	}
	segment := rtorchSmall
	switch {
	case request >= rtorchLarge/2:
		segment = rtorchSmall * (1 + (request-1)/rtorchSmall)
	case request > rtorchSmall/2:
		segment = rtorchLarge
	}
	p.reserved += segment * (1 + (live-p.reserved-1)/segment)
}

// Observe grows the cache if the policy's cycle did not free enough, and empties it after a
// refusal.
func (p *rtorch) Observe(c policy.Cycle) {
	switch c.Trigger {
	case policy.TriggerPolicy:
		p.grow(c.LiveAfter+p.request, p.request)
	case policy.TriggerRefusal:
		p.reserved = c.LiveAfter
	}
}

func (p *rtorch) String() string { return param.Text("rtorch", p.Params()) }
