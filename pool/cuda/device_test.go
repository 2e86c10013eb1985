package cuda

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
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
	free, total, err := memInfo(d)
	ok(t, err)
	if free <= 0 || total < free || d.Name() == "" {
		t.Errorf("%v: %d of %d bytes free", d, free, total)
	}
	if _, err := Open(1 << 20); err == nil {
		t.Error("device 1048576 opened")
	}
	t.Logf("%v, %d MiB free of %d", d, free>>20, total>>20)
}

func TestSpinTakesItsTime(t *testing.T) {
	d := open(t)
	s := must[*Stream](t)(d.NewStream())
	w := must[*Work](t)(NewWork(d))
	from, to := must[*event](t)(d.newEvent(true)), must[*event](t)(d.newEvent(true))
	ok(t, w.Spin(s, time.Microsecond)) // load the kernel
	ok(t, s.Synchronize())
	ok(t, from.Record(s))
	begin := time.Now()
	ok(t, w.Spin(s, 10*time.Millisecond))
	ok(t, to.Record(s))
	done, idle := must[bool](t)(to.Done()), must[bool](t)(s.idle())
	if (done || idle) && time.Since(begin) < 9*time.Millisecond { // a busy machine may look too late
		t.Errorf("while the kernel spins the event is done: %v, the stream is idle: %v", done, idle)
	}
	ok(t, to.wait())
	took := must[time.Duration](t)(elapsed(from, to))
	if took < 9*time.Millisecond || took > time.Second { // a simulated kernel may sleep long on a busy machine
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
	var took [2]time.Duration
	for i, sync := range []func() error{s.Synchronize, d.Synchronize} {
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
	if wait := d.onStream.Expected(); wait <= 0 || wait > took[0] {
		t.Errorf("waits for a stream are expected to take %v, and the one there was took %v", wait, took[0])
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

func TestCopies(t *testing.T) {
	d := open(t)
	s := must[*Stream](t)(d.NewStream())
	const n = 1 << 20
	a, b := must[uintptr](t)(memAlloc(d, n)), must[uintptr](t)(memAlloc(d, n))
	pinned := must[*HostBuffer](t)(d.NewHostBuffer(n))
	in, out := make([]byte, n), make([]byte, n)
	for i := range in {
		in[i] = byte(i * 7)
	}
	ok(t, s.upload(a, in))
	ok(t, s.Copy(b, a, n))
	ok(t, s.Copy(pinned.Addr(), b, n))
	ok(t, s.download(out, b))
	if string(out) != string(in) || string(pinned.Bytes()) != string(in) {
		t.Error("bytes changed on the way")
	}
	ok(t, s.fillPattern(b, []byte{9}, n))
	ok(t, s.download(out, b))
	if out[0] != 9 || out[n-1] != 9 {
		t.Error("not filled")
	}
	for _, pattern := range []string{"ab", "abcd", "abc", "abcdefgh"} {
		count := n / len(pattern)
		ok(t, s.fillPattern(a, []byte(pattern), int64(count)))
		ok(t, s.download(out, a))
		if got := string(out[:count*len(pattern)]); got != strings.Repeat(pattern, count) {
			t.Errorf("pattern %q: wrong bytes", pattern)
		}
	}
	copy(pinned.Bytes(), "pinned")
	ok(t, s.upload(a, pinned.Bytes())) // must not return before it is read
	clear(pinned.Bytes())
	ok(t, s.download(out, a))
	if string(out[:6]) != "pinned" {
		t.Errorf("uploaded %q", out[:6])
	}
	ok(t, pinned.Close())
	ok(t, memFree(d, a))
	ok(t, memFree(d, b))
}

func TestWorkFindsWrongWords(t *testing.T) {
	d := open(t)
	s := must[*Stream](t)(d.NewStream())
	w := must[*Work](t)(NewWork(d))
	const n = 10 << 20
	p := must[uintptr](t)(memAlloc(d, n))
	wrong := must[*HostBuffer](t)(d.NewHostBuffer(8))
	ok(t, w.Stamp(s, p, n, 42))
	ok(t, w.Verify(s, p, n, 42, wrong.Addr()))
	ok(t, s.Synchronize())
	if wrong.Uint32(0) != 0 {
		t.Errorf("%d words differ", wrong.Uint32(0))
	}
	ok(t, s.fillPattern(p+4096, []byte{0xff}, 8))
	ok(t, w.Verify(s, p, n, 42, wrong.Addr()))
	ok(t, s.Synchronize())
	if wrong.Uint32(0) != 2 {
		t.Errorf("%d words differ, want 2", wrong.Uint32(0))
	}
	ok(t, wrong.Close())
	ok(t, memFree(d, p))
}

func TestDriverErrorsHaveTheirCode(t *testing.T) {
	d := open(t)
	var e *Error
	if _, err := memAlloc(d, 1<<50); !errors.As(err, &e) || e.Code != codeOutOfMemory {
		t.Errorf("1 PiB: %v, want out of memory", err)
	}
	if _, err := d.Load("not PTX"); !errors.As(err, &e) || e.Code == 0 {
		t.Errorf("Load: %v, want a code through cu", err)
	}
}

// BenchmarkContext shows what it costs that each call sees the right context.
func BenchmarkContext(b *testing.B) {
	d := open(b)
	s := must[*Stream](b)(d.NewStream())
	b.Run("call=shim-sets-context", func(b *testing.B) {
		for b.Loop() {
			streamIdle(s)
		}
	})
	b.Run("call=cu-within", func(b *testing.B) {
		for b.Loop() {
			benchWithin(s)
		}
	})
	b.Run("call=cu-alone", func(b *testing.B) {
		ok(b, benchLocked(d, func() {
			for b.Loop() {
				benchBare(s)
			}
		}))
	})
}
