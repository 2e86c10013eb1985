package gc

import (
	"context"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

// MemoryLimit returns the limit to give to the runtime, in bytes. Used is what Go
// itself uses, and sample is of the space to watch. If that has no limit, the
// result is the largest number there is, which Go takes as no limit.
func (p *GoMemLimit) MemoryLimit(used int64, sample pressure.Sample) int64 {
	if sample.Limit <= 0 {
		return math.MaxInt64
	}
	return toBytes(float64(used) + p.Share*float64(max(0, sample.Headroom())))
}

// Steer sets the memory limit of the Go runtime once in Every until ctx is done,
// and then restores the old one. It returns when that is done. Each setting stops
// the world. Every must be above 0, and nothing else may set the limit meanwhile.
func (p *GoMemLimit) Steer(ctx context.Context, sample func() pressure.Sample) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	used := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	tick := time.NewTicker(p.Every)
	defer tick.Stop()
	for {
		metrics.Read(used)
		debug.SetMemoryLimit(p.MemoryLimit(int64(used[0].Value.Uint64()-used[1].Value.Uint64()), sample()))
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
