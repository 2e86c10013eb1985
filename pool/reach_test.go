package pool_test

import (
	"sync/atomic"
	"testing"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
)

// counting is managed memory that counts how often it is asked to settle.
type counting struct {
	pool.Host
	settled atomic.Int64
	tainted atomic.Int64
}

func (c *counting) Settle(_ uint32, tainted bool) error {
	c.settled.Add(1)
	if tainted {
		c.tainted.Add(1)
	}
	return nil
}

// The driver is asked before the processor uses memory only if work was noted since
// it was asked last.
func TestSettledOnce(t *testing.T) {
	up := new(counting)
	p := open(t, pool.Config{Upstream: up, Space: pressure.Managed})
	a, err := pool.Zeros[int32](p, 10, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := func(n int64, when string) {
		t.Helper()
		if got := up.settled.Load(); got != n {
			t.Errorf("%s: asked %d times, want %d", when, got, n)
		}
	}
	for i := range 10 {
		if err := a.Set(i, int32(i)); err != nil {
			t.Fatal(err)
		}
	}
	if v, err := a.View(3, 5).At(1); v != 4 || err != nil {
		t.Errorf("element %d, %v", v, err)
	}
	want(1, "elements")
	a.Use(7)
	a.At(0)
	a.At(1)
	want(2, "after work")
	a.Reach(func(m pool.Memory) error {
		if _, bytes, moves := m.MoveTo(0); !moves || bytes != 40 {
			t.Errorf("%d bytes, moves %v", bytes, moves)
		}
		if _, _, moves := m.MoveTo(0); moves {
			t.Error("it is there already")
		}
		m.UsedBy(9)
		return nil
	})
	a.At(0)
	want(3, "after work of a device")
	a.Reach(func(m pool.Memory) error {
		if _, _, moves := m.MoveTo(0); !moves {
			t.Error("the processor has used it since")
		}
		m.Taint()
		return nil
	})
	a.At(0)
	a.At(0)
	if up.tainted.Load() != 2 {
		t.Error("tainted memory settles each time")
	}
	a.Free()
	if _, err := a.At(0); err == nil {
		t.Error("an element of a freed array")
	}
	defer func() {
		if recover() == nil {
			t.Error("an index out of range does not panic")
		}
	}()
	a.At(10)
}

// What an element costs: the processor's own memory, and memory that it shares
// with a device.
func BenchmarkAt(b *testing.B) {
	for _, c := range []struct {
		name string
		cfg  pool.Config
	}{{"host", pool.Config{}}, {"managed", pool.Config{Upstream: new(counting), Space: pressure.Managed}}} {
		p, err := pool.New(c.cfg)
		if err != nil {
			b.Fatal(err)
		}
		a, err := pool.Zeros[float32](p, 1000, 0)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("memory="+c.name+"/via=At", func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if _, err := a.At(i % 1000); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("memory="+c.name+"/via=Do", func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if err := a.Do(func(s []float32) error { _ = s[i%1000]; return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("memory="+c.name+"/via=Do/elements=1000", func(b *testing.B) {
			for b.Loop() {
				if err := a.Do(func(s []float32) error {
					var sum float32
					for _, x := range s {
						sum += x
					}
					_ = sum
					return nil
				}); err != nil {
					b.Fatal(err)
				}
			}
		})
		a.Free()
		p.Close()
	}
}
