//go:build linux

package gc

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/eagergc/eagergc/gc/policy"
)

// BenchmarkMatrices is a program that hurts: two workers make matrices of 1 MiB in
// memory of their own, at more than 1 GB/s, beside 100 MiB of Go pointers in one
// list, so that a cycle takes long. It compares a ticker that collects each
// 100 ms with Own under a limit of 256 MiB and several policies. Run one way at
// a time: the peak is that of the process.
func BenchmarkMatrices(b *testing.B) {
	way := func(name string, own func(b *testing.B) func(*matrix)) {
		b.Run("way="+name, func(b *testing.B) {
			keep := own(b)
			for b.Loop() {
				runMatrices(b, keep)
			}
		})
	}
	way("ticker", func(b *testing.B) func(*matrix) {
		tick := time.NewTicker(100 * time.Millisecond)
		done := make(chan struct{})
		b.Cleanup(func() { tick.Stop(); close(done) })
		go func() {
			for {
				select {
				case <-done:
					return
				case <-tick.C:
					runtime.GC()
				}
			}
		}()
		return func(m *matrix) { runtime.AddCleanup(m, unmap, m.memory) }
	})
	for _, rule := range []string{"never", "pacer", "sqrt", "threshold:0.8", "cudajl", "v8step"} {
		way("own/policy="+rule, func(b *testing.B) func(*matrix) {
			c := embed(b, Config{Policy: policy.MustParse(rule).New(), Limit: 256 << 20})
			return func(m *matrix) { Own(c, m, matrixBytes, unmap, m.memory) }
		})
	}
}

const matrixBytes = 1 << 20

type matrix struct {
	memory []byte
	_      *matrix
}

func unmap(memory []byte) {
	if err := syscall.Munmap(memory); err != nil {
		panic(err)
	}
}

type link struct {
	next *link
	_    int
}

// runMatrices makes matrices for 2.4 s, and reports what a step took, and what the
// process held at most.
func runMatrices(b *testing.B, keep func(*matrix)) {
	var list *link
	for range 100 << 20 / 16 {
		list = &link{next: list}
	}
	runtime.GC()
	var steps [2][]float64
	before := processTime()
	begin := time.Now()
	stop := make(chan struct{})
	resident := watchResident(stop)
	var workers sync.WaitGroup
	for w := range steps {
		beside(&workers, func() {
			for time.Since(begin) < 2400*time.Millisecond {
				at := time.Now()
				oneMatrix(b, keep)
				steps[w] = append(steps[w], float64(time.Since(at)))
			}
		})
	}
	workers.Wait()
	took := time.Since(begin)
	cpu := processTime() - before
	close(stop)
	r := <-resident
	runtime.KeepAlive(list)

	all := slices.Concat(steps[0], steps[1])
	slices.Sort(all)
	b.ReportMetric(all[len(all)*99/100], "p99-ns")
	b.ReportMetric(all[len(all)-1], "max-ns")
	b.ReportMetric(float64(len(all))*matrixBytes/took.Seconds(), "B/s")
	b.ReportMetric(r.peak, "peak-B")
	b.ReportMetric(r.mean, "mean-B")
	b.ReportMetric(cpu.Seconds(), "cpu-s")
}

func oneMatrix(b *testing.B, keep func(*matrix)) {
	memory, err := syscall.Mmap(-1, 0, matrixBytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		b.Error(err)
		return
	}
	m := &matrix{memory: memory}
	keep(m)
	values := unsafe.Slice((*float64)(unsafe.Pointer(&memory[0])), len(memory)/8)
	sum := 0.0
	for i := range values {
		values[i] = float64(i)
	}
	for range 8 {
		for _, v := range values {
			sum += v
		}
	}
	if sum == 0 {
		b.Error("a sum of positive numbers is 0")
	}
	runtime.KeepAlive(m)
}

type resident struct{ peak, mean float64 }

// watchResident reads the process's resident memory every 2 ms until stop is closed.
func watchResident(stop chan struct{}) chan resident {
	result := make(chan resident, 1)
	go func() {
		var sum, peak, n float64
		for {
			text, _ := os.ReadFile("/proc/self/statm")
			pages, _ := strconv.ParseFloat(strings.Fields(string(text))[1], 64)
			bytes := pages * float64(os.Getpagesize())
			sum, peak, n = sum+bytes, max(peak, bytes), n+1
			select {
			case <-stop:
				result <- resident{peak, sum / n}
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	return result
}
