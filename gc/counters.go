package gc

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"unsafe"

	"github.com/eagergc/eagergc/pressure"
)

// Listen makes c count what libraries say that they hold, through counters of package
// pressure: those that exist and those to come, as if each of their bytes were given to [Collector.Account]. From
// then on an Add or Own of theirs may start a cycle and hold its caller, as Caps says. Finalizers and cleanups
// of the libraries free the memory. [Default] and package auto listen; in other programs one collector
// should. Close ends it; calls after the first do nothing.
func (c *Collector) Listen() {
	c.mu.Lock()
	if c.closed || c.listening != nil {
		c.mu.Unlock()
		return
	}
	c.listening = func() {}
	c.mu.Unlock()
	stop := pressure.Listen(c.join)
	c.mu.Lock()
	c.listening = stop
	closed := c.closed
	c.mu.Unlock()
	if closed {
		stop()
	}
}

// A library is a counter of package pressure.
type library struct {
	accounted
	name string
	read func() (bytes, objects int64)
}

func (c *Collector) join(name string, read func() (bytes, objects int64)) func(int64, unsafe.Pointer) {
	o := c.own()
	l := &library{name: name, read: read}
	l.o, l.log.last = o, gauges.Add(1)*gaugeIDs
	o.mu.Lock()
	o.libraries = append(o.libraries, l)
	o.mu.Unlock()
	if bytes, _ := read(); bytes > 0 {
		l.live.Add(bytes)
		o.take(bytes)
	}
	return func(bytes int64, _ unsafe.Pointer) {
		if bytes > 0 {
			l.more(bytes)
		} else {
			l.live.Add(bytes)
			l.gave(-bytes)
		}
	}
}

// reconcile counts what has moved while the collector began to listen, and moves that are
// under way just now: the next cycle does not find those.
func (o *ownership) reconcile() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.libraries {
		bytes, _ := l.read()
		missed := bytes - l.live.Load()
		l.live.Add(missed)
		o.live.Add(missed)
	}
}

// Counted is what libraries have counted under one name.
type Counted struct {
	Name    string
	Live    int64 // bytes, exactly
	Objects int64
	Freed   int64 // bytes that were given back after cycles of the collector's, so far
}

// String returns it as "libfoo: 1.20 GiB in 340 objects".
func (n Counted) String() string {
	objects := "1 object"
	if n.Objects != 1 {
		objects = pressure.Count(n.Objects) + " objects"
	}
	return fmt.Sprintf("%s: %v in %s", n.Name, pressure.Bytes(n.Live), objects)
}

// Counters returns what the libraries hold to which c listens, the largest first.
func (c *Collector) Counters() []Counted {
	c.mu.Lock()
	listening := c.listening != nil
	c.mu.Unlock()
	o := c.owned.Load()
	if !listening || o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []Counted
	for _, l := range o.libraries {
		i := slices.IndexFunc(all, func(n Counted) bool { return n.Name == l.name })
		if i < 0 {
			i, all = len(all), append(all, Counted{Name: l.name})
		}
		bytes, objects := l.read()
		all[i].Live += bytes
		all[i].Objects += objects
		all[i].Freed += l.freed.Load()
	}
	slices.SortFunc(all, func(a, b Counted) int { return cmp.Or(cmp.Compare(b.Live, a.Live), cmp.Compare(a.Name, b.Name)) })
	return all
}

// counters are those of the libraries, for the log.
func (c *Collector) counters() slog.Attr {
	var all []any
	for _, n := range c.Counters() {
		all = append(all, slog.Int64(n.Name, n.Live))
	}
	return slog.Group("libraries", all...)
}
