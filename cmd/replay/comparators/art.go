package comparators

import (
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/gc/policy/param"
)

// art is Android's rule for native bytes. It computes
//
//	urgency = (new/2 + old/65536) / Free
//
// where new is the bytes that became live since the last cycle, and old the other live bytes. From
// 1 on it starts a cycle beside the program. Above 4, if more than Stop is live, it holds the
// caller until the cycle has ended. It checks every 64th allocation and those above 10,000,000/64
// bytes. If live bytes have fallen below old, old falls with them and nothing starts.
//
// Upstream's fraction also has the Java heap, which is left out. Free is the denominator for an
// empty Java heap and an app in the foreground. It is 50 MiB: twice 8 MiB, the least free part of
// the heap, and an allowance of 16 MiB/8 + 32 MiB. Stop is 1 GiB, upstream's default; upstream
// recommends a quarter to a third of the memory. free=1%,stop=25% is the scaled form. The zero
// value never collects.
//
// Source: runtime/gc/heap.cc (NativeMemoryOverTarget, CheckGCForNative), heap.h,
// runtime_options.def, GrapheneOS/platform_art@97192faee8.
type art struct {
	Free param.Size
	Stop param.Size

	old        int64 // live bytes after the last cycle, or the least since
	registered int64 // allocations seen
}

const (
	artInterval  = 64
	artImmediate = 10_000_000 / artInterval
	artNew       = 2
	artOld       = 65536
	artWait      = 4.0
)

func (p *art) Params() []param.Param {
	return []param.Param{
		param.Bind(&p.Free, "free", param.Size{Bytes: 50 * miB}, param.SizeOr(50*miB), "allowance for new bytes, which count half"),
		param.Bind(&p.Stop, "stop", param.Size{Bytes: 1024 * miB}, param.SizeOr(1024*miB), "live bytes above which an urgency over 4 holds the caller"),
	}
}

// Decide computes the urgency. It must see every allocation, to count them.
func (p *art) Decide(at policy.Point) policy.Decision {
	free := p.Free.Of(at.Sample.Limit)
	if at.At != policy.Allocation || free <= 0 {
		return policy.Decision{Reason: "not an allocation"}
	}
	p.registered++
	if p.registered%artInterval != 0 && at.Request <= artImmediate {
		return policy.Decision{Reason: "not checked"}
	}
	live := granted(&at)
	if live < p.old {
		p.old = live
		return policy.Decision{Reason: "live bytes fell"}
	}
	urgency := float64((live-p.old)/artNew+p.old/artOld) / float64(free)
	switch {
	case urgency < 1:
		return policy.Decision{Reason: "not urgent"}
	case urgency > artWait && live > p.Stop.Of(at.Sample.Limit):
		return policy.Decision{Action: policy.Block, Reason: "falling behind"}
	}
	return overlap(&at, "urgent")
}

// Observe starts a new count of new bytes.
func (p *art) Observe(c policy.Cycle) { p.old = c.LiveAfter }

func (p *art) String() string { return param.Text("art", p.Params()) }
