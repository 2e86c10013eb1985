package pool

import (
	"cmp"
	"fmt"
	"iter"
	"reflect"
	"runtime"
	"slices"
	"strings"
)

// A Holder is a place in the program and what it holds. Numbers are exact if
// every block is sampled, at a rate of 1, and unbiased estimates otherwise.
type Holder struct {
	Site  string // function and file:line that called the pool
	Stack string // the calls that led there, one a line, innermost first: function, a tab, file:line

	Bytes       int64 // live bytes allocated there
	Blocks      int64 // and their number
	AllocBytes  int64 // bytes allocated there so far, freed ones included
	AllocBlocks int64
}

// callers yields the next n lines of the stack, for people.
func (h Holder) callers(n int) iter.Seq[string] {
	return func(yield func(string) bool) {
		_, rest, _ := strings.Cut(h.Stack, "\n")
		for range n {
			var line string
			if line, rest, _ = strings.Cut(rest, "\n"); line == "" || !yield(innermost(line)) {
				return
			}
		}
	}
}

// Holders returns the allocation sites that hold most live bytes, at most n,
// the largest first; a negative n means all sites ever sampled. It is empty
// unless the pool samples sites. It does not hold up the pool.
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

// SiteRate returns the mean number of bytes between two sampled blocks, as in
// [Config]; 0 if the pool samples none.
func (p *Pool) SiteRate() int64 { return p.sites.rate }

// read returns what each place has allocated and holds. Stacks that differ only
// inside the pool are one place.
func (s *sites) read() map[string]Holder {
	s.mu.RLock()
	all := s.all // what is in it does not change
	s.mu.RUnlock()
	sums := map[string]Holder{}
	for _, x := range all[1:] {
		// Freed first: what is freed meanwhile must not make more than was allocated.
		freedBytes, freedBlocks := x.freed.bytes.Load(), x.freed.blocks.Load()
		bytes, blocks := x.alloc.bytes.Load(), x.alloc.blocks.Load()
		text := x.text()
		h := sums[text]
		h.Stack, h.Site = text, innermost(text)
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

// text returns the frames from the nearest caller outside this package on, as
// [trace.Event] labels say them.
func (at stack) text() string {
	n := slices.Index(at[:], 0)
	if n < 0 {
		n = len(at)
	}
	frames := runtime.CallersFrames(at[:n])
	var b strings.Builder
	for more := n > 0; more; {
		var f runtime.Frame
		f, more = frames.Next()
		inside := strings.HasPrefix(f.Function, packagePath) && !strings.HasSuffix(f.File, "_test.go")
		if inside && b.Len() == 0 || f.Function == "runtime.goexit" || f.Function == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s\t%s:%d", f.Function, f.File, f.Line)
	}
	if n == 0 {
		return "(too many sites)"
	}
	return b.String()
}

var packagePath = reflect.TypeFor[Pool]().PkgPath() + "."

// site returns the place that called the pool, for people.
func (at stack) site() string { return innermost(at.text()) }

// innermost returns the first line of a stack's text, for people.
func innermost(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.Replace(line, "\t", " ", 1)
}
