package cuda

import (
	"testing"
	"time"
)

func TestDriverPoolKeepsAndTrims(t *testing.T) {
	d := open(t)
	s := must[*Stream](t)(d.NewStream())
	p := must[*DriverPool](t)(d.NewDriverPool(-1))
	const n = 64 << 20
	addr := must[uintptr](t)(p.Alloc(n, s))
	usage := func(step string, wantUsed int64, wantReserved bool) {
		t.Helper()
		ok(t, d.Synchronize())
		reserved, used, err := p.Usage()
		ok(t, err)
		if used != wantUsed || (reserved >= n) != wantReserved {
			t.Errorf("%s: %d bytes used, %d reserved; want %d, reserved %v", step, used, reserved, wantUsed, wantReserved)
		}
	}
	usage("allocated", n, true)
	ok(t, p.Free(addr, s))
	usage("freed", 0, true)
	ok(t, p.Trim(0))
	usage("trimmed", 0, false)
	ok(t, p.SetThreshold(0))
	addr = must[uintptr](t)(p.Alloc(n, s))
	ok(t, p.Free(addr, s))
	usage("freed with threshold 0", 0, false)
	ok(t, p.Close())
}

// Memory is freed after its stream is gone, and only once that stream's work
// has ended: until then it keeps its contents.
func TestDriverPoolFreeAfterItsStreamIsGone(t *testing.T) {
	d := open(t)
	s, other := must[*Stream](t)(d.NewStream()), must[*Stream](t)(d.NewStream())
	w := must[*Work](t)(NewWork(d))
	p := must[*DriverPool](t)(d.NewDriverPool(-1))
	wrong := must[*HostBuffer](t)(d.NewHostBuffer(8))
	const n = 1 << 20
	addr := must[uintptr](t)(p.Alloc(n, s))
	ok(t, w.Stamp(s, addr, n, 1))
	ok(t, w.Spin(s, 5*time.Millisecond))
	ok(t, w.Verify(s, addr, n, 1, wrong.Addr()))
	ok(t, s.Close())
	ok(t, p.Free(addr, s))
	again := must[uintptr](t)(p.Alloc(n, other)) // may be the same memory, in order
	ok(t, w.Stamp(other, again, n, 2))
	ok(t, d.Synchronize())
	if wrong.Uint32(0) != 0 {
		t.Errorf("%d words were overwritten while still in use", wrong.Uint32(0))
	}
	ok(t, p.Free(again, other))
	ok(t, d.Synchronize())
	if _, used, _ := p.Usage(); used != 0 {
		t.Errorf("%d bytes still used", used)
	}
	ok(t, wrong.Close())
	ok(t, p.Close())
}
