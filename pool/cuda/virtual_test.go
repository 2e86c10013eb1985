package cuda

import (
	"testing"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
)

// Blocks in the middle of a large segment keep their bytes, and no more than
// the chunks that they lie in, when another size needs the rest.
func TestVirtualMemoryGoesBackInParts(t *testing.T) {
	d := open(t)
	up := must[*VirtualMemory](t)(d.Virtual())
	const limit = 1 << 30
	p := must[*pool.Pool](t)(pool.New(pool.Config{Upstream: up, Space: d.Space(),
		Limits: pressure.Limits{Hard: pressure.Limit{Bytes: limit}}, Warn: func(err error) { t.Error(err) }}))
	array := func(mib int) pool.Array[uint32] {
		t.Helper()
		return must[pool.Array[uint32]](t)(pool.NewArray[uint32](p, mib<<18, 0))
	}
	array(960).Free() // one segment, with chunks of 32 MiB
	var keep, gaps []pool.Array[uint32]
	for range 3 {
		gaps = append(gaps, array(280))
		keep = append(keep, array(20))
	}
	for i, a := range keep {
		ok(t, a.Fill(uint32(i+1)))
	}
	for _, a := range gaps {
		a.Free()
	}
	before, _, err := d.MemInfo()
	ok(t, err)
	large := array(600)
	ok(t, large.Fill(9))
	after, _, err := d.MemInfo()
	ok(t, err)
	if reserved := p.Stats().Reserved; reserved > limit || before-after > limit-960<<20 {
		t.Errorf("%v reserved, and the driver has %v less", pressure.Bytes(reserved), pressure.Bytes(before-after))
	}
	for i, a := range keep {
		got := make([]uint32, a.Len())
		ok(t, a.CopyOut(got))
		for k, v := range got {
			if v != uint32(i+1) {
				t.Fatalf("word %d of block %d is %d", k, i, v)
			}
		}
		a.Free()
	}
	large.Free()
	p.Close()
	if s := p.Stats(); s.Reserved != 0 || s.Segments != 0 || len(up.maps.list) != 0 {
		t.Errorf("left behind: %v in %d segments, %d mappings", pressure.Bytes(s.Reserved), s.Segments, len(up.maps.list))
	}
}

// What is not whole chunks is refused, and stays as it is.
func TestVirtualMemoryRefusesParts(t *testing.T) {
	d := open(t)
	up := must[*VirtualMemory](t)(d.Virtual())
	const bytes = 320 << 20
	addr := must[uintptr](t)(up.Allocate(bytes+512, 0)) // the last chunk is short
	if part, size := up.Part(addr+512, bytes); part%uintptr(up.granule) != 0 || size <= 0 || part+uintptr(size) != addr+bytes+512 {
		t.Errorf("Part = %#x, %d of segment at %#x", part, size, addr)
	}
	if up.Release(addr+512, bytes, 0) == nil || up.Release(addr, 512, 0) == nil || up.Release(addr-1, 512, 0) == nil {
		t.Error("Release of less than chunks succeeds")
	}
	part, size := up.Part(addr+512, bytes/2)
	ok(t, up.Release(part, size, 0))
	ok(t, up.Release(addr, int64(part-addr), 0))
	ok(t, up.Release(part+uintptr(size), bytes+512-size-int64(part-addr), 0))
	if len(up.maps.list) != 0 {
		t.Errorf("%d mappings are left", len(up.maps.list))
	}
}
