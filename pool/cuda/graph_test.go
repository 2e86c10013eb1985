package cuda

import (
	"errors"
	"testing"
)

func TestCaptureRepeatsWork(t *testing.T) {
	d := open(t)
	s := must[*Stream](t)(d.NewStream())
	w := must[*Work](t)(NewWork(d))
	const n = 1 << 20
	p := must[uintptr](t)(memAlloc(d, n))
	wrong := must[*HostBuffer](t)(d.NewHostBuffer(8))
	ok(t, s.Fill(p, 0, n))
	g := must[*Graph](t)(s.Capture(func() error {
		if !must[bool](t)(s.Capturing()) {
			t.Error("not capturing")
		}
		return w.Stamp(s, p, n, 3)
	}))
	verify := func(want uint32) {
		t.Helper()
		copy(wrong.Bytes(), make([]byte, 8))
		ok(t, w.Verify(s, p, n, 3, wrong.Addr()))
		ok(t, s.Synchronize())
		if got := wrong.Uint32(0); got != want {
			t.Errorf("%d words differ, want %d", got, want)
		}
	}
	verify(n / 4) // captured, not done
	ok(t, g.Launch(s))
	verify(0)
	ok(t, g.Close())

	failed := errors.New("failed")
	if _, err := s.Capture(func() error { return failed }); err != failed {
		t.Errorf("Capture: %v, want what the function returned", err)
	}
	verify(0) // the stream works again
	ok(t, wrong.Close())
	ok(t, memFree(d, p))
}

func BenchmarkCapturing(b *testing.B) {
	s := must[*Stream](b)(open(b).NewStream())
	for b.Loop() {
		s.Capturing()
	}
}
