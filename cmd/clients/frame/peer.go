package frame

import (
	"fmt"
	"runtime"
	"strconv"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/eagergc/eagergc/pressure"
)

// peers are the ways of other projects, by name. Each takes a limit in bytes.
var peers = map[string]func(limit int64) (start func()){
	"otel":         otel,
	"automemlimit": automemlimit,
	"watchdog":     lotus,
}

func peer(name, arg string) (start func(), err error) {
	make, ok := peers[name]
	if !ok {
		return nil, fmt.Errorf("%q (gogctuner and memlimiter need the build tag peers): %w", name, ErrNoWay)
	}
	mib, err := strconv.Atoi(arg)
	if err != nil {
		return nil, fmt.Errorf("way %s: want a limit in MiB: %w", name, err)
	}
	return make(int64(mib) << 20), nil
}

// automemlimit sets GOMEMLIMIT to 0.9 of what the container is said to have.
func automemlimit(limit int64) func() {
	return func() {
		_, err := memlimit.Set(memlimit.WithRatio(0.9), memlimit.WithProvider(memlimit.Limit(uint64(limit))))
		if err != nil {
			panic(err)
		}
	}
}

// otel is the rule of the OpenTelemetry collector's memory limiter, told of
// resident memory in place of the Go heap: above the hard limit a cycle at each look, at
// least apart by an interval that doubles to 30 s while cycles free under 5 %; above the
// soft limit, four fifths of it, at least 10 s apart.
//
// Source: internal/memorylimiter (opentelemetry-collector, 2026-08) as
// shared by its documentation; the interval between looks is its default, 1 s, a tenth here.
func otel(limit int64) func() {
	const look, softEvery, most, futile = 100 * time.Millisecond, 10 * time.Second, 30 * time.Second, 0.05
	resident := func() int64 {
		r, err := pressure.ReadResident()
		if err != nil {
			panic(err)
		}
		return r.Anonymous + r.Mapped
	}
	return func() {
		go func() {
			last := time.Now().Add(-softEvery)
			var wait time.Duration
			for range time.Tick(look) {
				used, since := resident(), time.Since(last)
				if hard := used > limit && since >= wait; !hard && (used <= limit*4/5 || since < max(wait, softEvery)) {
					continue
				}
				runtime.GC()
				last = time.Now()
				if freed := used - resident(); float64(freed) < futile*float64(used) {
					wait = min(most, max(2*wait, time.Second))
				} else {
					wait = 0
				}
			}
		}()
	}
}
