package array_test

import (
	"sync/atomic"
	"testing"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
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
	a, err := array.Zeros[int32](p, 10)
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
	a.Reach(func(m array.Memory) error {
		if !m.MoveTo(0) {
			t.Error("it is on the host")
		}
		if m.MoveTo(0) {
			t.Error("it is there already")
		}
		m.UsedBy(9)
		return nil
	})
	a.At(0)
	want(3, "after work of a device")
	a.Reach(func(m array.Memory) error {
		if !m.MoveTo(0) {
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
	first := func(m array.Memory) error {
		if !m.MoveTo(0) || m.MoveTo(0) || !m.MoveTo(1) {
			t.Error("a view moves once to each device")
		}
		return nil
	}
	a.View(0, 5).Reach(first)
	a.View(2, 4).Reach(func(m array.Memory) error {
		if m.MoveTo(1) {
			t.Error("a part of what has moved moves again")
		}
		return nil
	})
	a.View(3, 8).Reach(first) // one that reaches beyond it
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
