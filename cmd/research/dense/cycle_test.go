package main

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/eagergc/eagergc/cmd/replay/live"
	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
)

// How long a cycle takes beside a ballast: started as soon as the last one has
// settled (apart=0s), while the Go runtime still sweeps after it, or later; with
// nothing else to do, or beside a goroutine that computes.
func BenchmarkCycle(b *testing.B) {
	for _, size := range []int64{256 << 20, 1 << 30} {
		ballast := live.NewBallast(size)
		for _, apart := range []time.Duration{0, 250 * time.Millisecond} {
			for _, busy := range []bool{false, true} {
				b.Run(fmt.Sprintf("ballast=%dMiB/apart=%v/busy=%v", size>>20, apart, busy), func(b *testing.B) {
					benchCycle(b, apart, busy)
				})
			}
		}
		runtime.KeepAlive(ballast)
	}
}

func benchCycle(b *testing.B, apart time.Duration, busy bool) {
	c, err := gc.New(gc.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	if busy {
		quit := make(chan struct{})
		defer close(quit)
		go compute(quit)
	}
	c.Collect(policy.TriggerExplicit)
	for b.Loop() {
		b.StopTimer()
		time.Sleep(apart)
		b.StartTimer()
		c.Collect(policy.TriggerExplicit)
	}
}

func compute(quit chan struct{}) {
	x := 1.0
	for {
		select {
		case <-quit:
			return
		default:
			for range 1000 {
				x = x*1.000001 + 1e-9
			}
		}
	}
}
