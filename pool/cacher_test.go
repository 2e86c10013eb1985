package pool_test

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
)

// A driverPool caches what is released to it, as a pool of the driver does: it
// takes memory of the device in units, and says so when it is asked.
type driverPool struct {
	*small
	mu    sync.Mutex
	usage pool.Usage
	keep  int64
	lost  error
}

const unit = 2 * mib

func (*driverPool) Shares() pressure.Space { return pressure.Device(201) }

func (d *driverPool) take(bytes int64) error {
	if lack := bytes - (d.usage.Reserved - d.usage.Used); lack > 0 {
		lack = (lack + unit - 1) / unit * unit
		d.small.mu.Lock()
		defer d.small.mu.Unlock()
		if lack > d.total-d.used {
			return errors.New("the device is full")
		}
		d.used += lack
		d.usage.Reserved += lack
	}
	d.usage.Used += bytes
	d.usage.ReservedPeak = max(d.usage.ReservedPeak, d.usage.Reserved)
	d.usage.UsedPeak = max(d.usage.UsedPeak, d.usage.Used)
	d.small.peak = max(d.small.peak, d.used)
	return nil
}

func (d *driverPool) Allocate(n int64, stream uint32) (uintptr, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.take(n); err != nil {
		return 0, err
	}
	return d.device.Allocate(n, stream)
}

func (d *driverPool) Release(addr uintptr, n int64, stream uint32) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.usage.Used -= n
	return d.device.Release(addr, n, stream)
}

func (d *driverPool) Keep(n int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keep = n
	return d.lost
}

func (d *driverPool) Trim(keep int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.small.mu.Lock()
	defer d.small.mu.Unlock()
	n := max(0, min(d.usage.Reserved-keep, (d.usage.Reserved-d.usage.Used)/unit*unit))
	d.usage.Reserved -= n
	d.used -= n
	return d.lost
}

func (d *driverPool) Usage() (pool.Usage, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.usage, d.lost
}

// bothPools returns a pool over the driver's and a caching one on one device.
func bothPools(t *testing.T, total int64, limits pressure.Limits) (driver, caching *pool.Pool, d *driverPool) {
	t.Helper()
	d = &driverPool{small: newSmall(total)}
	driver = open(t, pool.Config{Upstream: d, Space: pressure.Device(0), Direct: true, Limits: limits})
	caching = open(t, pool.Config{Upstream: onDevice201{d.small}, Space: pressure.Device(0), Limits: limits})
	return driver, caching, d
}

type onDevice201 struct{ *small }

func (onDevice201) Shares() pressure.Space { return pressure.Device(201) }

// What the driver's pool caches is reserved memory: it makes room for others, and
// counts for the hard limit.
func TestTheDriversCacheMakesRoom(t *testing.T) {
	for _, c := range []struct {
		name   string
		total  int64
		limits pressure.Limits
	}{{"device full", 64 * mib, pressure.Limits{}}, {"at the limit", 1000 * mib, hard(64 * mib)}} {
		t.Run(c.name, func(t *testing.T) {
			driver, caching, d := bothPools(t, c.total, c.limits)
			for range 2 {
				x, err := driver.Alloc(60*mib, 0)
				if err != nil {
					t.Fatal(err)
				}
				driver.Free(x)
				y, err := caching.Alloc(32*mib, 0)
				if err != nil {
					t.Fatalf("nothing is live, and 32 of 64 MiB are refused: %v", err)
				}
				if _, err := driver.Alloc(60*mib, 0); !errors.Is(err, pool.ErrOutOfMemory) {
					t.Errorf("92 of 64 MiB: %v", err)
				}
				caching.Free(y)
			}
			if d.peak > 64*mib {
				t.Errorf("%v were reserved", pressure.Bytes(d.peak))
			}
		})
	}
}

// What a closed pool's driver did not give back is nobody's to give back, so it must
// not count against the pools that are left.
func TestACacheThatStaysDoesNotCountOnceItsPoolIsClosed(t *testing.T) {
	driver, caching, d := bothPools(t, 1000*mib, hard(64*mib))
	x, err := driver.Alloc(60*mib, 0)
	if err != nil {
		t.Fatal(err)
	}
	driver.Free(x)
	driver.Stats()
	d.lost = errors.New("the driver is gone")
	driver.Close()
	y, err := caching.Alloc(32*mib, 0)
	if err != nil {
		t.Fatalf("nothing is live, and 32 of 64 MiB are refused: %v", err)
	}
	caching.Free(y)
}

// The driver takes memory in units: what it rounds up counts, too.
func TestHardLimitHoldsForWhatTheDriverTakes(t *testing.T) {
	driver, caching, d := bothPools(t, 1000*mib, hard(9*mib))
	x, err := caching.Alloc(4*mib, 0)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []pool.Block
	for {
		b, err := driver.Alloc(unit/2+4096, 0)
		if err != nil {
			break
		}
		blocks = append(blocks, b)
	}
	if d.used > 9*mib || len(blocks) == 0 {
		t.Errorf("%d blocks, and %v are reserved", len(blocks), pressure.Bytes(d.used))
	}
	for _, b := range blocks {
		driver.Free(b)
	}
	caching.Free(x)
}

func TestTheDriversCacheIsTrimmedAndReported(t *testing.T) {
	driver, _, d := bothPools(t, 1000*mib, pressure.Limits{})
	fill := func() {
		t.Helper()
		x, err := driver.Alloc(20*mib, 0)
		if err != nil {
			t.Fatal(err)
		}
		driver.Free(x)
	}
	fill()
	s := driver.Stats()
	if s.Upstream.Reserved-s.Upstream.Used != 20*mib || s.Upstream.UsedPeak != 20*mib || s.Reserved != 0 {
		t.Errorf("the upstream has %+v", s.Upstream)
	}
	var out bytes.Buffer
	driver.Report(&out)
	if !strings.Contains(out.String(), "Cached by the upstream: 20.00 MiB") {
		t.Errorf("the report does not say what is cached:\n%s", &out)
	}
	if n := driver.FreeAllBlocks(); n != 20*mib || d.used != 0 {
		t.Errorf("FreeAllBlocks gave %d bytes back, %d are left", n, d.used)
	}
	fill()
	if n := driver.Reclaim(pool.StepReap); n != 20*mib || d.used != 0 {
		t.Errorf("Reclaim gave %d bytes back, %d are left", n, d.used)
	}
	fill()
	if err := driver.SetLimits(pressure.Limits{Soft: pressure.Limit{Bytes: 8 * mib}}); err != nil || d.used != 8*mib || d.keep != 8*mib {
		t.Errorf("with a soft limit of 8 MiB %d bytes are reserved, the threshold is %d: %v", d.used, d.keep, err)
	}
	fill()
	if err := driver.Synchronize(); err != nil || d.used > 8*mib {
		t.Errorf("%d bytes are reserved after a sync point: %v", d.used, err)
	}
}

// A driver that fails costs nothing but what it caches.
func TestTheDriverFails(t *testing.T) {
	d := &driverPool{small: newSmall(64 * mib), lost: errors.New("driver lost")}
	warned := 0
	var mu sync.Mutex
	p := open(t, pool.Config{Upstream: d, Space: pressure.Device(0), Direct: true, Limits: hard(32 * mib), Warn: func(error) {
		mu.Lock()
		defer mu.Unlock()
		warned++
	}})
	b, err := p.Alloc(mib, 0)
	if err != nil {
		t.Fatal(err)
	}
	p.Free(b)
	p.FreeAllBlocks()
	p.Stats()
	if warned == 0 {
		t.Error("nobody was told")
	}
}
