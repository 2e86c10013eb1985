package gc

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/eagergc/eagergc/gc/internal/observe"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// Account adds bytes of memory outside the Go heap that have no owner; bytes below 0 are taken back.
// It has the shape of .NET's GC.AddMemoryPressure and RemoveMemoryPressure. The bytes share a space
// and a limit with those of [Own]. Account may start a cycle and hold the caller as Own does. It
// panics on more than [MaxBytes], and if more is taken back than was counted.
//
// The program frees the memory itself, usually in finalizers or cleanups, which then call Account
// with bytes below 0. A cycle waits for them for at most 100 ms, and counts the bytes that they
// take back as its yield.
func (c *Collector) Account(bytes int64) {
	checkBytes("Account", max(bytes, -bytes))
	a := c.own().accounts[0]
	if bytes >= 0 {
		a.more(bytes)
		return
	}
	if left := a.live.Add(bytes); left < 0 {
		a.live.Add(-bytes)
		panic(fmt.Sprintf("gc: Account takes back %d bytes, where only %d are counted", -bytes, left-bytes))
	}
	a.gave(-bytes)
}

// An account is memory that other code counts and frees: the bytes of Account, or of one counter of
// package pressure, which a library has.
type account struct {
	o      *ownership
	name   string                        // of a library
	read   func() (bytes, objects int64) // the exact counts; live may lack changes that are under way: see reconcile
	live   atomic.Int64
	given  atomic.Int64 // bytes taken back since the start
	before atomic.Int64 // value of given when the last mark began
	freed  atomic.Int64 // bytes that were taken back after cycles
	log    observe.Account
}

func (a *account) more(bytes int64) {
	o, c := a.o, a.o.gate.c
	a.live.Add(bytes)
	o.add(bytes)
	c.recordNow(func(to *observe.Recorder) { a.record(to, siteOf()) })
	if !c.awake.Load() {
		c.stayAwake()
	}
}

// gave counts bytes that were taken from live.
func (a *account) gave(bytes int64) {
	o := a.o
	a.given.Add(bytes)
	o.live.Add(-bytes)
	o.gate.c.recordNow(func(to *observe.Recorder) { a.record(to, "") })
}

// all returns the account of Account, and then those of the libraries.
func (o *ownership) all() []*account {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.accounts
}

// promoteAll comes before the mark, because cleanups may run before that has ended.
func (o *ownership) promoteAll() {
	for _, a := range o.all() {
		a.before.Store(a.given.Load())
	}
	o.reconcile()
}

// walk waits until finalizers and cleanups have taken back the memory of dead objects. Other memory
// that is taken back meanwhile counts too, because it cannot be distinguished.
func (o *ownership) walk(r *collection) {
	all := o.all()
	var live int64
	for _, a := range all {
		live += a.live.Load()
		if r.Trigger == policy.TriggerNatural { // promoteAll was not called before its mark
			a.before.Store(a.given.Load())
		}
	}
	c := o.gate.c
	if live > 0 {
		marks := c.engine.Pending().Marked
		r.released.Await(settleBound, func() bool { return c.engine.Pending().Done(marks) })
	}
	var freed int64
	for _, a := range all {
		yield := a.given.Load() - a.before.Load()
		a.freed.Add(yield)
		freed += yield
	}
	c.releases.Credit(&r.released, &o.gate.returns, freed)
}

const settleBound = 100 * time.Millisecond // the longest that a cycle waits for finalizers and cleanups

// Listen makes c count the memory that libraries report through counters of package pressure,
// present and future, as if they called [Collector.Account]. From then on their calls of Add and
// Own may start a cycle and hold the caller as Caps allows. [Default] and package auto listen. In
// other programs one collector should. Close ends it. Calls after the first do nothing.
func (c *Collector) Listen() {
	c.life.listen.Do(func() {
		stop := pressure.Listen(c.join)
		c.mu.Lock()
		closed := c.life.closed
		if !closed {
			c.life.listening = stop
		}
		c.mu.Unlock()
		if closed {
			stop()
		}
	})
}

func (c *Collector) join(name string, read func() (bytes, objects int64)) func(int64, unsafe.Pointer) {
	o := c.own()
	l := &account{o: o, name: strings.ToValidUTF8(name, "\uFFFD"), read: read} // for pages and metrics
	o.mu.Lock()
	o.accounts = append(o.accounts, l)
	o.mu.Unlock()
	if bytes, _ := read(); bytes > 0 {
		l.live.Add(bytes)
		o.take(bytes)
		c.recordNow(func(to *observe.Recorder) { l.record(to, trace.BeforeLabel) })
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

// reconcile adds changes that were missed while the collector began to listen, or that are under way.
func (o *ownership) reconcile() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.accounts[1:] {
		bytes, _ := l.read()
		missed := bytes - l.live.Load()
		l.live.Add(missed)
		o.live.Add(missed)
	}
}

// Counted is memory that libraries count under one name.
type Counted struct {
	Name    string
	Live    int64 // bytes, exactly
	Objects int64
	Freed   int64 // bytes that were given back after cycles
}

// Counters returns the memory of the libraries that c listens to, the largest first.
func (c *Collector) Counters() []Counted {
	c.mu.Lock()
	listening := c.life.listening != nil
	c.mu.Unlock()
	o := c.owned.Load()
	if !listening || o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []Counted
	for _, l := range o.accounts[1:] {
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
