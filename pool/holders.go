package pool

import (
	"cmp"
	"iter"
	"reflect"
	"slices"
	"strings"

	"github.com/eagergc/eagergc/pressure"
)

// A Holder is an allocation site and the memory that it holds. The numbers are
// exact if every block is sampled ([Config].Sites is 1). Otherwise they are
// estimates without bias.
type Holder struct {
	Site  string // function and file:line that called the pool
	Stack string // the calls that led there, one a line, innermost first: function, a tab, file:line

	Bytes       int64 // live bytes allocated there
	Blocks      int64 // number of live blocks allocated there
	AllocBytes  int64 // bytes allocated there so far, freed ones included
	AllocBlocks int64 // number of blocks allocated there so far, freed ones included
}

// callers yields the n lines of the stack after the first, as people read them.
func (h Holder) callers(n int) iter.Seq[string] {
	return func(yield func(string) bool) {
		_, rest, _ := strings.Cut(h.Stack, "\n")
		for range n {
			var line string
			if line, rest, _ = strings.Cut(rest, "\n"); line == "" || !yield(pressure.SiteLine(line)) {
				return
			}
		}
	}
}

// Holders returns the n allocation sites that hold most live bytes, the largest
// first. With a negative n it returns all sites that were ever sampled. It returns
// nothing if the pool samples no sites. It does not hold up the pool.
func (p *Pool) Holders(n int) []Holder {
	var list []Holder
	for _, h := range p.sites.read() {
		if h.Bytes > 0 || n < 0 {
			list = append(list, h)
		}
	}
	slices.SortFunc(list, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Stack, b.Stack))
	})
	if n < 0 {
		return list
	}
	return list[:min(n, len(list))]
}

// SiteRate returns the mean number of bytes between two sampled blocks:
// [Config].Sites, or what SitesByLimit has picked; 0 if the pool samples none.
func (p *Pool) SiteRate() int64 { return p.sites.rate }

// read returns a Holder for each allocation site, by its text. Stacks that differ
// only inside the pool are one site.
func (s *sites) read() map[string]Holder {
	s.mu.RLock()
	all := s.all // what is in it does not change
	s.mu.RUnlock()
	sums := map[string]Holder{}
	for _, x := range all[1:] {
		// Freed is read first: otherwise a free at this moment could make freed more than allocated.
		freedBytes, freedBlocks := x.freed.bytes.Load(), x.freed.blocks.Load()
		bytes, blocks := x.alloc.bytes.Load(), x.alloc.blocks.Load()
		text := x.text()
		h := sums[text]
		h.Stack, h.Site = text, pressure.SiteLine(text)
		h.AllocBytes += bytes
		h.AllocBlocks += blocks
		h.Bytes += bytes - freedBytes
		h.Blocks += blocks - freedBlocks
		sums[text] = h
	}
	for text, h := range sums {
		h.Blocks, h.AllocBlocks = (h.Blocks+512)/1024, (h.AllocBlocks+512)/1024
		sums[text] = h
	}
	return sums
}

// text returns the frames of the stack, one a line, as the labels of a
// [trace.Event] have them. It begins with the innermost caller outside this package.
func (at stack) text() string {
	n := slices.Index(at[:], 0)
	if n < 0 {
		n = len(at)
	}
	if n == 0 {
		return "(too many sites)"
	}
	return pressure.SiteText(at[:n], packagePath)
}

var packagePath = reflect.TypeFor[Pool]().PkgPath() + "."

// site returns the innermost caller outside this package, as people read it.
func (at stack) site() string { return pressure.SiteLine(at.text()) }
