package cuda

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
)

// A profile says how long the GPU, waits and calls took, by name, of its region alone.
func TestProfile(t *testing.T) {
	p := must[*Pools](t)(Default(0))
	defer p.Close()
	if p.Device == nil {
		got, err := p.Profile(func() error {
			p.Memory.Free(must[pool.Block](t)(p.Memory.Alloc(100, 0)))
			return errors.New("mine")
		})
		if err == nil || err.Error() != "mine" || got.Allocs != 1 || len(got.Spent) != 0 {
			t.Errorf("without a GPU: %+v, %v", got, err)
		}
		return
	}
	w := must[*Work](t)(NewWork(p.Device))
	s := must[*Stream](t)(p.Device.NewStream())
	driver := must[*DriverPool](t)(p.Device.NewDriverPool(-1))
	a := must[array.Array[byte]](t)(array.New[byte](p.Memory, 1<<20, array.On(s.ID())))
	work := func() error {
		ok(t, a.CopyIn(make([]byte, 1<<20)))
		for range 2 * atOnce { // more than have an event at a time
			ok(t, a.View(0, 100).Fill(1))
		}
		addr := must[uintptr](t)(driver.Alloc(1<<20, s))
		ok(t, driver.Free(addr, s))
		for range 3 {
			ok(t, w.Spin(s, 5*time.Millisecond))
		}
		return s.Synchronize()
	}
	ok(t, work()) // loads what is loaded at first use
	p.Memory.Free(must[pool.Block](t)(p.Memory.Alloc(100, 0)))
	got := must[Profile](t)(p.Profile(work))
	spent := map[string]Spent{}
	for _, x := range got.Spent {
		spent[x.On+" "+x.Name] = x
	}
	for name, want := range map[string]Spent{
		"gpu spin":                {Count: 3, Time: 14 * time.Millisecond},
		"gpu copy":                {Count: 1, Bytes: 1 << 20},
		"gpu fill":                {Count: 2 * atOnce, Bytes: 200 * atOnce},
		"gpu allocate":            {Count: 1, Bytes: 1 << 20},
		"wait stream synchronize": {Count: 1, Time: time.Microsecond},
		"driver cuLaunchKernel":   {Count: 3},
	} {
		if x := spent[name]; x.Count != want.Count || x.Bytes != want.Bytes || x.Time < want.Time || x.Time > time.Minute {
			t.Errorf("%s: %+v, want %+v or more time", name, x, want)
		}
	}
	if got.Elapsed < 14*time.Millisecond || got.Allocs != 0 || spent["driver cuModuleLoadData"].Count != 0 {
		t.Errorf("what was before the region is in it, or its work is not: %+v", got.Measurement)
	}
	if text := got.String(); strings.Count(text, "\n") != 2+len(got.Spent) || !strings.Contains(text, "  spin\n") {
		t.Errorf("%s", text)
	}
	t.Logf("\n%v", got)
	again := must[Profile](t)(p.Profile(func() error {
		if _, err := p.Profile(func() error { return nil }); err == nil {
			t.Error("two profiles at a time")
		}
		return nil
	}))
	for _, x := range again.Spent {
		if x.On != "driver" {
			t.Errorf("nothing was done, and %+v", x)
		}
	}
	a.Free()
	ok(t, errors.Join(driver.Close(), w.Close(), s.Close()))
}
