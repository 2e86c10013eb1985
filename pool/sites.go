package pool

import (
	"cmp"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
)

// A Holder is a place in the program and what it holds.
type Holder struct {
	Site   string // function and file:line
	Bytes  int64  // live bytes allocated there
	Blocks int64
}

// here returns the return address of the nearest caller outside this package.
func here() uintptr {
	var pcs [16]uintptr
	n := runtime.Callers(3, pcs[:])
	frames := runtime.CallersFrames(pcs[:n])
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, packagePath) || strings.HasSuffix(frame.File, "_test.go") {
			return frame.PC + 1
		}
		if !more {
			return 0
		}
	}
}

var packagePath = reflect.TypeFor[Pool]().PkgPath() + "."

// place is the text form of what here has returned.
func place(pc uintptr) string {
	if pc == 0 {
		return "unknown"
	}
	frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	return fmt.Sprintf("%s %s:%d", frame.Function, frame.File, frame.Line)
}

// Holders returns the allocation sites that hold most live bytes, at most n, the
// largest first. It is empty unless the pool tracks sites. It stops the pool
// while it looks at every block.
func (p *Pool) Holders(n int) []Holder {
	if !p.cfg.Sites {
		return nil
	}
	sums := p.sumSites()
	list := make([]Holder, 0, len(sums))
	for pc, h := range sums {
		h.Site = place(pc)
		list = append(list, h)
	}
	slices.SortFunc(list, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Site, b.Site))
	})
	return list[:min(n, len(list))]
}

// sumSites adds up the live blocks by site. Blocks change hands under the lock
// of a front, so all of them are taken.
func (p *Pool) sumSites() map[uintptr]Holder {
	for k := range p.fronts {
		p.fronts[k].mu.Lock()
		defer p.fronts[k].mu.Unlock()
	}
	p.core.mu.Lock()
	defer p.core.mu.Unlock()
	sums := map[uintptr]Holder{}
	for n := uint32(1); n <= p.core.headers.used; n++ {
		i := spread(n)
		h := p.core.headers.at(i)
		if h.gen.Load()%2 == 1 {
			s := sums[h.site]
			s.Bytes += h.size
			s.Blocks++
			sums[h.site] = s
		}
	}
	return sums
}
