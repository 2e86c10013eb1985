package pool

import (
	"strings"
	"testing"

	"github.com/eagergc/eagergc/pressure"
)

// TestCheckFindsEachFault makes one fault at a time in a sound pool, and wants to be told of it.
func TestCheckFindsEachFault(t *testing.T) {
	p := newPool(t, Config{Upstream: upOf(1 << 30), Limits: pressure.Limits{Hard: bytesOf(64 * mib)}})
	p.OneCache()
	var all []Block
	alloc := func(n int, bytes int64) {
		for range n {
			b, err := p.Alloc(bytes, 0)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, b)
		}
	}
	alloc(6, 8192)
	alloc(130, 512)
	for _, b := range all[6:] {
		p.Free(b) // 64 of them are in the depot, and 2 in the magazine
	}
	for _, k := range []int{0, 2, 4} {
		p.retire(uint32(all[k].ref)) // pieces in the core that are no neighbours
		p.core.headers.at(uint32(all[k].ref)).gen.Add(1)
	}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	c, f, d, hs := &p.core, &p.caches[0], &p.depot, &p.core.headers
	tree := c.bins[bin{small: true}]
	free, used := hs.at(uint32(all[2].ref)), hs.at(uint32(all[1].ref))
	m := &f.magazines[slotOf(512, 0)]
	top := hs.at(m.head)
	s := &d.slots[slotOf(512, 0)]
	full := hs.at(s.head)
	for name, x := range map[string]struct {
		do, undo func()
		want     string
	}{
		"a piece more":         {func() { c.pieces++ }, func() { c.pieces-- }, "in bins, counted"},
		"bytes less":           {func() { c.freed -= 512 }, func() { c.freed += 512 }, "in bins, counted"},
		"not free":             {func() { free.free = false }, func() { free.free = true }, "is in a bin and in use"},
		"handed out":           {func() { free.gen.Add(1) }, func() { free.gen.Add(1) }, "is in a bin and in use"},
		"another stream":       {func() { free.stream++ }, func() { free.stream-- }, "is in the wrong bin"},
		"not small":            {func() { free.small = false }, func() { free.small = true }, "is in the wrong bin"},
		"a hole":               {func() { free.hole = true }, func() { free.hole = false }, ""},
		"out of order":         {func() { free.addr = 1 << 50 }, func() { free.addr = all[2].Addr }, "is out of order"},
		"a neighbour unknown":  {func() { used.prev++ }, func() { used.prev-- }, "are no neighbours"},
		"a gap":                {func() { used.addr += 512 }, func() { used.addr -= 512 }, "are no neighbours"},
		"not merged":           {func() { used.free = true }, func() { used.free = false }, "were not merged"},
		"cached more":          {func() { f.cached += 512 }, func() { f.cached -= 512 }, "bytes in magazines, counted"},
		"kept too much":        {func() { f.keep = f.cached - 1 }, func() { f.keep = 64 * mib }, "in magazines, counted"},
		"a size":               {func() { top.size *= 2 }, func() { top.size /= 2 }, ""},
		"a stream":             {func() { top.stream++ }, func() { top.stream-- }, "does not belong in its magazine"},
		"free in a magazine":   {func() { top.free = true }, func() { top.free = false }, ""},
		"used in a magazine":   {func() { top.gen.Add(1) }, func() { top.gen.Add(1) }, "does not belong in its magazine"},
		"a longer magazine":    {func() { m.n++ }, func() { m.n-- }, "pieces in a magazine of"},
		"a magazine more":      {func() { d.full.Add(1) }, func() { d.full.Add(-1) }, "magazines in the depot, counted"},
		"a magazine forgotten": {func() { s.n--; d.full.Add(-1) }, func() { s.n++; d.full.Add(1) }, "more magazines in the depot than"},
		"used in the depot":    {func() { full.gen.Add(1) }, func() { full.gen.Add(1) }, "does not belong in its magazine"},
		"a root less":          {func() { tree.root, c.chunk = hs.at(tree.root).right, int64(tree.root) }, func() { tree.root, c.chunk = uint32(c.chunk), 0 }, "in bins, counted"},
	} {
		x.do()
		err := p.Check()
		if x.undo(); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
		if err := p.Check(); err != nil {
			t.Fatalf("%s was not undone: %v", name, err)
		}
	}
	many := &f.magazines[slotOf(1024, 0)]
	for range magazineMax + 1 { // one piece too many
		i := c.take(1024, 0)
		hs.at(i).left = many.head
		*many = magazine{size: 1024, head: i, n: many.n + 1}
		f.cached += 1024
	}
	if err := p.Check(); err == nil || !strings.Contains(err.Error(), "65 pieces in a magazine of 65, at most 64") {
		t.Error(err)
	}
	p.flush()
	for _, k := range []int{1, 3, 5} {
		p.Free(all[k])
	}
	f.mu.Lock()
	for range 3 { // those that the test gave back by itself
		f.count.Give(8192)
	}
	f.mu.Unlock()
}

// TestCheckLooksAtHoles.
func TestCheckLooksAtHoles(t *testing.T) {
	var c core
	c.chunk = 4096
	c.addRange(span{addr: 1 << 20, bytes: 1 << 20})
	if err := c.check(); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []span{{addr: 1<<21 + 512, bytes: 4096}, {addr: 1 << 21, bytes: 4096 + 512}} {
		c := core{chunk: 4096}
		if c.addRange(bad); c.check() == nil || !strings.Contains(c.check().Error(), "is not whole chunks") {
			t.Errorf("%+v: %v", bad, c.check())
		}
	}
}
