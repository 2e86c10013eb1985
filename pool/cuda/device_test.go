package cuda

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
)

// open returns GPU 0, or skips the test with the reason.
func open(t testing.TB) *Device {
	t.Helper()
	return openIndex(t, 0)
}

func openIndex(t testing.TB, n int) *Device {
	t.Helper()
	if count, err := Count(); err != nil {
		t.Skipf("no GPU: %v", err)
	} else if n >= count {
		t.Skipf("device %d needed, the driver shows %d", n, count)
	}
	d, err := Open(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ok(t, d.Close()) })
	return d
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// must returns the value, or ends the test.
func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		ok(t, err)
		return v
	}
}

func TestOpenWithoutDevice(t *testing.T) {
	n, err := Count()
	if err == nil && n > 0 {
		t.Skip("there is a GPU")
	}
	d, err := Open(0)
	if d != nil || err == nil {
		t.Fatalf("Open = %v, %v; want an error", d, err)
	}
	var e *Error
	if !errors.Is(err, ErrNoCUDA) && !errors.As(err, &e) {
		t.Errorf("Open: %v; want ErrNoCUDA or the driver's error", err)
	}
}

func TestDeviceReports(t *testing.T) {
	d := open(t)
	var e *Error
	if _, err := memAlloc(d, 1<<50); !errors.As(err, &e) || e.Code != codeOutOfMemory {
		t.Errorf("1 PiB: %v, want out of memory", err)
	}
	if _, err := d.Load("not PTX"); !errors.As(err, &e) || e.Code == 0 {
		t.Errorf("Load: %v, want a code through cu", err)
	}
	info := must[pressure.Info](t)(d.Memory().Info())
	if info.Free <= 0 || info.Total < info.Free || d.name == "" || fmt.Sprint(d.Pinned()) != fmt.Sprintf("pinned memory of device 0 (%s)", d.name) {
		t.Errorf("%v: %+v; %v", d, info, d.Pinned())
	}
	if _, err := Open(must[int](t)(Count())); err == nil {
		t.Error("a device beyond the last one opened")
	}
}

func TestSpinTakesItsTime(t *testing.T) {
	d := open(t)
	s := must[*Stream](t)(d.NewStream())
	w := must[*Work](t)(NewWork(d))
	ok(t, w.Spin(s, time.Microsecond)) // load the kernel
	ok(t, s.Synchronize())
	begin := time.Now()
	ok(t, errors.Join(w.Spin(s, 10*time.Millisecond), s.Synchronize()))
	if took := time.Since(begin); took < 9*time.Millisecond || took > time.Second { // a simulated kernel may sleep long on a busy machine
		t.Errorf("spun for %v, want 10 ms", took)
	}
	ok(t, w.Close())
}

func TestWaitsAreSyncPoints(t *testing.T) {
	d := open(t)
	s := must[*Stream](t)(d.NewStream())
	w := must[*Work](t)(NewWork(d))
	policy := &counting{Policy: policy.Spec{}.New()}
	c := must[*gc.Collector](t)(gc.New(gc.Config{Policy: policy, Limit: 1}))
	defer c.Close()
	gc.Own(c, new([64]byte), 1, func(int) {}, 0).Release() // something to watch
	d.SyncThrough(c)
	defer d.SyncThrough(nil)
	ok(t, s.Synchronize())
	if policy.syncs != 0 {
		t.Errorf("%d sync points on an idle stream, want 0", policy.syncs)
	}
	p := newPool(t, d.Memory(), d.Space(), false)
	a := must[array.Array[byte]](t)(array.New[byte](p, 100, array.On(s.ID())))
	defer a.Free()
	download := func() error { _, err := a.ToSlice(); return err }
	var took [3]time.Duration
	for i, sync := range []func() error{s.Synchronize, d.Synchronize, download} {
		for try := 0; policy.syncs == i && try < 20; try++ { // a busy machine may come when the work has ended
			ok(t, w.Spin(s, 5*time.Millisecond))
			begin := time.Now()
			ok(t, sync())
			took[i] = time.Since(begin)
			if idle := must[bool](t)(s.idle()); !idle {
				t.Errorf("wait %d ended before the work", i)
			}
		}
		if policy.syncs != i+1 {
			t.Errorf("%d sync points after wait %d", policy.syncs, i+1)
		}
	}
	names := d.onDevice.Name + ", " + d.onStream.Name + ", " + d.onCopy.Name
	if wait := d.onStream.Expected(); wait <= 0 || wait > took[0] || names != "device synchronize, stream synchronize, copy to host" {
		t.Errorf("waits for a stream are expected to take %v, and the one there was took %v; the places are %s", wait, took[0], names)
	}
}

// counting is a policy that counts sync points and never collects.
type counting struct {
	policy.Policy
	syncs int
}

func (p *counting) Decide(at policy.Point) policy.Decision {
	if at.At == policy.Sync {
		p.syncs++
	}
	return policy.Decision{}
}

// Elements of any size fill an array.
func TestFillOfAnySize(t *testing.T) {
	d := open(t)
	p := newPool(t, d.Memory(), d.Space(), false)
	fills(t, p, int16(258))
	fills(t, p, [3]byte{1, 2, 3})
	fills(t, p, [2]uint64{1, 1 << 40})
}

func fills[T comparable](t *testing.T, p *pool.Pool, v T) {
	a := must[array.Array[T]](t)(array.New[T](p, 100_000))
	defer a.Free()
	ok(t, a.Fill(v))
	if k := slices.IndexFunc(must[[]T](t)(a.ToSlice()), func(x T) bool { return x != v }); k >= 0 {
		t.Errorf("element %d is not %v", k, v)
	}
}

// An upload from pinned memory has read it when it returns.
func TestUploadFromPinnedMemory(t *testing.T) {
	d := open(t)
	p, pinned := newPool(t, d.Memory(), d.Space(), false), newPool(t, d.Pinned(), pressure.Pinned, false)
	want := pattern(1 << 20)
	a, b := must[array.Array[uint32]](t)(array.New[uint32](p, len(want))), must[array.Array[uint32]](t)(array.From(pinned, want))
	ok(t, b.Do(func(s []uint32) error {
		defer clear(s)
		return a.CopyIn(s)
	}))
	if !slices.Equal(must[[]uint32](t)(a.ToSlice()), want) {
		t.Error("what was written after the upload arrived")
	}
	a.Free()
	b.Free()
}
