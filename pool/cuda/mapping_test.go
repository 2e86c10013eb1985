package cuda

import (
	"testing"

	"pgregory.net/rapid"
)

// TestMappingsAgainstModel gives random parts of mappings back, as a pool does,
// and holds what is left to a model that knows of each chunk.
func TestMappingsAgainstModel(t *testing.T) {
	const unit = 512
	rapid.Check(t, func(rt *rapid.T) {
		var l mappings
		held := map[uintptr]*mapping{} // by the address of each chunk not given back
		next := uintptr(1 << 40)
		rt.Repeat(map[string]func(*rapid.T){
			"add": func(rt *rapid.T) {
				m := &mapping{base: next, chunk: unit * rapid.Int64Range(1, 8).Draw(rt, "chunk"), bytes: unit * rapid.Int64Range(1, 100).Draw(rt, "bytes")}
				m.left = m.bytes
				next += uintptr(m.bytes + unit*rapid.Int64Range(0, 2).Draw(rt, "gap"))
				for at := int64(0); at < m.bytes; at += m.chunk {
					held[m.base+uintptr(at)] = m
				}
				l.add(m)
			},
			"give back": func(rt *rapid.T) {
				if len(l.list) == 0 {
					return
				}
				m := rapid.SampledFrom(l.list).Draw(rt, "mapping")
				from := unit * rapid.Int64Range(0, m.bytes/unit-1).Draw(rt, "from")
				bytes := unit * rapid.Int64Range(1, (m.bytes-from)/unit).Draw(rt, "length")
				addr := m.base + uintptr(from)
				part, size := m.part(addr, bytes)
				// The chunks that lie in there, by the model.
				var least uintptr
				var want int64
				for at := int64(0); at < m.bytes; at += m.chunk {
					if n := min(m.chunk, m.bytes-at); at >= from && at+n <= from+bytes {
						if want == 0 {
							least = m.base + uintptr(at)
						}
						want += n
					}
				}
				if part != least || size != want {
					rt.Fatalf("part of %d at %d = %#x, %d; want %#x, %d", bytes, from, part, size, least, want)
				}
				for at := part; at < part+uintptr(size); at += uintptr(m.chunk) {
					if held[at] == nil {
						return // it has gone before: no pool would give it back again
					}
				}
				if size == 0 {
					return
				}
				if again, same := m.part(part, size); again != part || same != size {
					rt.Fatalf("a part of %d at %#x is %d at %#x", size, part, same, again)
				}
				for at := part; at < part+uintptr(size); at += uintptr(m.chunk) {
					delete(held, at)
				}
				if last := l.forget(m, size); last != (m.left == 0) {
					rt.Fatalf("last: %v, and %d bytes are left", last, m.left)
				}
			},
			"": func(rt *rapid.T) {
				sum := int64(0)
				for at, m := range held {
					sum += min(m.chunk, m.bytes-int64(at-m.base))
					if l.find(at) != m || l.find(at+unit-1) != m {
						rt.Fatalf("%#x is not found", at)
					}
				}
				for _, m := range l.list {
					sum -= m.left
				}
				if sum != 0 || l.find(next+2*unit) != nil {
					rt.Fatalf("the model has %d bytes more", sum)
				}
			},
		})
	})
}
