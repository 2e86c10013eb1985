//go:build linux

package gc

import (
	"fmt"
	"hash/crc32"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// BenchmarkReachable is a service that can reach 90 to 120 % of its limit: what
// does a policy take from its throughput? Requests under the policy and requests
// under never take turns, 50 ms each, so that a busy machine counts for both;
// of-never is the median ratio of their numbers; cpu-of-never is the same for
// each second of processor time, cycles and all.
func BenchmarkReachable(b *testing.B) {
	for _, info := range policy.List() {
		for _, percent := range []int{90, 100, 101, 120} {
			b.Run(fmt.Sprintf("policy=%s/reachable=%d%%", info.Name, percent), func(b *testing.B) {
				text := info.Name
				if info.Scaled != "" {
					text = info.Scaled
				}
				never, ours := newService(b, "never", percent), newService(b, text, percent)
				var ratios, byCPU []float64
				for b.Loop() {
					for range 8 {
						n, nCPU := never.serve(50 * time.Millisecond)
						p, pCPU := ours.serve(50 * time.Millisecond)
						ratios, byCPU = append(ratios, p/n), append(byCPU, (p/pCPU)/(n/nCPU))
					}
				}
				slices.Sort(ratios)
				slices.Sort(byCPU)
				b.ReportMetric(ratios[len(ratios)/2], "of-never")
				b.ReportMetric(byCPU[len(byCPU)/2], "cpu-of-never")
				s := ours.c.Stats()
				b.ReportMetric(float64(total(s.Cycles)-s.Cycles[policy.TriggerNatural])/float64(b.N), "cycles/op")
				runtime.KeepAlive(never.kept)
				runtime.KeepAlive(ours.kept)
			})
		}
	}
}

// A service keeps some owners, and makes one that it drops for each request.
type service struct {
	c    *Collector
	kept []*thing
}

const (
	serviceLimit = 256 << 20
	serviceOwns  = 256 << 10
)

func newService(b *testing.B, rule string, percent int) *service {
	s := &service{c: embed(b, Config{Policy: policy.MustParse(rule).New(), Limit: serviceLimit})}
	for range serviceLimit / serviceOwns * percent / 100 {
		o := new(thing)
		s.kept = append(s.kept, o)
		Own(s.c, o, serviceOwns, func(int) {}, 0)
	}
	return s
}

// serve returns how many requests a goroutine for each core has served, and the
// processor time that the process took, in seconds.
func (s *service) serve(d time.Duration) (requests, cpu float64) {
	before := processTime()
	var served atomic.Int64
	var all sync.WaitGroup
	end := time.Now().Add(d)
	for range runtime.GOMAXPROCS(0) {
		beside(&all, func() {
			page := make([]byte, 256<<10)
			for ; time.Now().Before(end); served.Add(1) {
				Own(s.c, new(thing), serviceOwns, func(int) {}, 0)
				crc32.ChecksumIEEE(page) // about what it takes to fill as much memory
			}
		})
	}
	all.Wait()
	return float64(served.Load()), (processTime() - before).Seconds()
}
