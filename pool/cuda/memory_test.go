package cuda

import (
	"testing"
	"time"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
)

// Blocks between free pieces keep their bytes when the memory of those pieces
// moves to a block of another size, while work still writes what moves. The
// driver holds no more than the pool counts.
func TestMemoryMovesToWhereItIsNeeded(t *testing.T) {
	d := open(t)
	up := d.memory()
	if up.Granule() == 0 {
		t.Skip("this device cannot map memory")
	}
	w := must[*Work](t)(NewWork(d))
	wrong := must[*HostBuffer](t)(d.NewHostBuffer(8))
	s := must[*Stream](t)(d.NewStream())
	limit := scaled(d, 1<<30)
	p := must[*pool.Pool](t)(pool.New(pool.Config{Upstream: up, Space: d.Space(),
		Limits: pressure.Limits{Hard: pressure.Limit{Bytes: limit}}, Warn: func(err error) { t.Error(err) }}))
	take := func(mib int64, stream uint32) array.Array[byte] {
		t.Helper()
		return must[array.Array[byte]](t)(array.New[byte](p, int(scaled(d, mib<<20)), array.On(stream)))
	}
	stamp := func(a array.Array[byte], value uint32) {
		t.Helper()
		ok(t, With(a, s, func(addr uintptr) error { return w.Stamp(s, addr, a.Bytes(), value) }))
	}
	before, _, err := memInfo(d)
	ok(t, err)
	var keep, gaps []array.Array[byte]
	for i := range 3 {
		gaps = append(gaps, take(280, s.ID()))
		keep = append(keep, take(20, s.ID()))
		stamp(keep[i], uint32(i+1))
	}
	ok(t, s.Synchronize())
	ok(t, w.Spin(s, 20*time.Millisecond))
	for _, a := range gaps {
		stamp(a, 9) // not done yet when the memory moves
		a.Free()
	}
	large := take(700, s.ID())
	stamp(large, 10)
	other := take(180, 0) // of another stream
	ok(t, other.Fill(11))
	after, _, err := memInfo(d)
	ok(t, err)
	if reserved := p.Stats().Reserved; reserved > limit || before-after > limit+64<<20 {
		t.Errorf("%v reserved, and the driver has %v less", pressure.Bytes(reserved), pressure.Bytes(before-after))
	}
	verify := func(a array.Array[byte], value uint32) {
		t.Helper()
		ok(t, With(a, s, func(addr uintptr) error { return w.Verify(s, addr, a.Bytes(), value, wrong.Addr()) }))
	}
	for i, a := range keep {
		verify(a, uint32(i+1))
	}
	verify(large, 10)
	ok(t, s.Synchronize())
	if n := wrong.Uint32(0); n != 0 {
		t.Errorf("%d words are wrong", n)
	}
	got := make([]byte, other.Len())
	ok(t, other.CopyOut(got))
	for k, v := range got {
		if v != 11 {
			t.Fatalf("byte %d is %d", k, v)
		}
	}
	ok(t, p.Check())
	for _, a := range append(keep, large, other) {
		a.Free()
	}
	p.Close()
	if s := p.Stats(); s.Reserved != 0 || s.Segments != 0 || len(up.memory) != 0 || len(up.ranges) != 0 || len(up.old) != 0 {
		t.Errorf("left behind: %v in %d segments, %d chunks, %d ranges, %d old runs", pressure.Bytes(s.Reserved), s.Segments, len(up.memory), len(up.ranges), len(up.old))
	}
	ok(t, wrong.Close())
	ok(t, s.Close())
	ok(t, w.Close())
}

// Prepared memory serves allocations without a call that maps.
func TestPreparedMemoryIsMapped(t *testing.T) {
	d := open(t)
	up := d.memory()
	if up.Granule() == 0 {
		t.Skip("this device cannot map memory")
	}
	p := must[*pool.Pool](t)(pool.New(pool.Config{Upstream: up, Space: d.Space(), Warn: func(err error) { t.Error(err) }}))
	defer p.Close() // all pools of a device share its limits
	ok(t, p.Prepare(1<<30, 0))
	before := byName(Calls())
	for range 8 {
		defer p.Free(must[pool.Block](t)(p.Alloc(128<<20, 0)))
	}
	after := byName(Calls())
	for _, name := range []string{"cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemAlloc"} {
		if n := after[name].Calls - before[name].Calls; n != 0 {
			t.Errorf("%d calls of %s", n, name)
		}
	}
	if n := after["cuMemMap"]; n.Calls == 0 || n.Time <= 0 {
		t.Errorf("cuMemMap was counted %d times, %v", n.Calls, n.Time)
	}
}
