package cuda

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
)

var peerTime = flag.Duration("peers", 200*time.Millisecond, "how long TestPeerCopies copies, for each memory and direction")

// Another device uses memory of a driver's pool in place only if the pool was made for
// it. Copies between the two need no access.
func TestUsersOfADriverPool(t *testing.T) {
	d, e := openIndex(t, 0), openIndex(t, 1)
	can := must[bool](t)(canPeer(0, 1))
	far := newPool(t, e.Memory(), e.Space(), false)
	s := must[*Stream](t)(e.NewStream())
	k := must[*Kernel](t)(must[*Module](t)(e.Load(double)).Kernel("double"))
	for name, users := range map[string][]*Device{"nobody": nil, "the other": {e}} {
		driver := must[*DriverPool](t)(d.NewDriverPool(-1, users...))
		t.Cleanup(func() { ok(t, driver.Close()) }) // after the pool
		p := newPool(t, driver.Upstream(), d.Space(), true)
		a := must[array.Array[float32]](t)(array.From(p, []float32{1, 2, 3}))
		err := Launch(k, s, Dim{}, Dim{X: 3}, a)
		switch want := []float32{2, 4, 6}; {
		case users == nil || !can:
			if !errors.Is(err, array.ErrReach) || !strings.Contains(err.Error(), "on device 0 cannot be used on device 1") {
				t.Errorf("memory for %s: %v", name, err)
			}
		case err != nil:
			t.Errorf("memory for %s: %v", name, err)
		default:
			if got := must[[]float32](t)(a.ToSlice()); !slices.Equal(got, want) {
				t.Errorf("memory for %s: %v", name, got)
			}
		}
		ok(t, a.Fill(7))
		b := must[array.Array[float32]](t)(array.New[float32](far, 3))
		ok(t, CopyTo(b, a, s))
		ok(t, b.View(0, 1).Fill(8))
		ok(t, CopyTo(a, b, s))
		if got := must[[]float32](t)(a.ToSlice()); !slices.Equal(got, []float32{8, 7, 7}) {
			t.Errorf("copied to and fro, memory for %s: %v", name, got)
		}
		a.Free()
		b.Free()
	}
}

// Copies of mixed sizes between two devices arrive whole, in both directions, into and
// out of each kind of memory, whether the other device may use it in place or not:
// access to a driver's pool made copies into it lose data without an error (CUDA.jl#3112).
func TestPeerCopies(t *testing.T) {
	d, e := openIndex(t, 0), openIndex(t, 1)
	alone, shared := must[*DriverPool](t)(d.NewDriverPool(-1)), must[*DriverPool](t)(d.NewDriverPool(-1, e))
	t.Cleanup(func() { ok(t, errors.Join(alone.Close(), shared.Close())) })
	for _, m := range []memory{
		{"mapped", d.Memory(), d.Space(), false},
		{"segments", d.segments(), d.Space(), false},
		{"pool", alone.Upstream(), d.Space(), true},
		{"pool with access", shared.Upstream(), d.Space(), true},
	} {
		here := newPool(t, m.up, m.space, m.direct)
		there := newPool(t, e.Memory(), e.Space(), false)
		for _, into := range []bool{true, false} {
			name := fmt.Sprintf("memory=%s/into=%v", m.name, into)
			t.Run(name, func(t *testing.T) {
				if into {
					peerCopies(t, here, there, d, e)
				} else {
					peerCopies(t, there, here, e, d)
				}
			})
		}
	}
}

// peerCopies copies from device src to device dst, a stretch of memory at a time in
// pieces of mixed sizes, and compares each stretch.
func peerCopies(t *testing.T, to, from *pool.Pool, dst, src *Device) {
	const bytes = 16 << 20
	a := must[array.Array[byte]](t)(array.New[byte](from, bytes))
	b := must[array.Array[byte]](t)(array.New[byte](to, bytes))
	defer a.Free()
	defer b.Free()
	w, v := must[*Work](t)(NewWork(src)), must[*Work](t)(NewWork(dst))
	s, check := must[*Stream](t)(src.NewStream()), must[*Stream](t)(dst.NewStream())
	wrong := must[*HostBuffer](t)(dst.NewHostBuffer(8))
	random := rand.New(rand.NewPCG(1, uint64(dst.index)))
	copies, rounds, moved := 0, uint32(0), int64(0)
	for begin := time.Now(); time.Since(begin) < *peerTime; rounds++ {
		seed := random.Uint32()
		ok(t, With(a, s, func(addr uintptr) error { return w.Stamp(s, addr, bytes, seed) }))
		ok(t, With(b, check, func(addr uintptr) error { return check.fillPattern(addr, []byte{0xa5}, bytes) }))
		small := rounds%2 == 0 // half of the rounds are many small pieces
		for at := 0; at < bytes; {
			n := 1 << random.IntN(23)
			if small {
				n = 1 << random.IntN(14)
			}
			n = min(n+random.IntN(n), bytes-at)
			ok(t, CopyTo(b.View(at, at+n), a.View(at, at+n), s))
			at, copies, moved = at+n, copies+1, moved+int64(n)
		}
		ok(t, With(b, check, func(addr uintptr) error { return v.Verify(check, addr, bytes, seed, wrong.Addr()) }))
		ok(t, check.Synchronize())
		if n := wrong.Uint32(0); n != 0 {
			t.Fatalf("round %d: %d words of %d are wrong after %d copies", rounds, n, bytes/4, copies)
		}
	}
	t.Logf("%d copies, %d MiB, in %d rounds: all right", copies, moved>>20, rounds)
	ok(t, errors.Join(wrong.Close(), w.Close(), v.Close(), s.Close(), check.Close()))
}
