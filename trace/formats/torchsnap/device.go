package torchsnap

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

// A device is one list of entries, as events, and the blocks of its segments at the end.
type device struct {
	space   pressure.Space
	objects *recording.Objects // of all devices
	budget  *recording.Budget
	events  []trace.Event
	entries int     // taken so far
	now     int64   // time of the last entry
	fresh   []span  // segments of the window, by address
	before  []entry // the Allocs of objects that were live before it

	requested bool    // there was a free_requested
	completed int     // drops that are known by free_completed only
	unknown   []entry // free_completed of unknown addresses, while there was no free_requested

	held []block // live at the end, by the segments

	reserved    int64 // bytes taken in the window
	released    int64 // bytes given back in the window
	reservedEnd int64 // bytes held at the end, by the segments
}

type span struct{ from, to uint64 }

// count adds n bytes to a sum of sizes, which must stay below 2^62.
func count(sum *int64, n int64) error {
	if n > maxSize-*sum {
		return errors.New("the sizes so far add up to 2^62 bytes or more")
	}
	*sum += n
	return nil
}

// Memory that the reader uses for a block and for an unknown drop, in bytes.
const (
	blockBytes   = 40
	unknownBytes = 112
	maxFresh     = 1 << 16 // segments; a real snapshot has thousands
)

// add takes the next entry.
func (d *device) add(e entry) error {
	if e.Time < d.now {
		return fmt.Errorf("time goes backwards: time_us %d after %d", e.Time/1000, d.now/1000)
	}
	d.now, e.Space = e.Time, d.space
	if e.completed && !d.isDrop(e) {
		return nil
	}
	var err error
	switch e.Kind {
	case trace.Alloc:
		err = d.objects.Alloc(&e.Event, e.addr, d.entries)
	case trace.Drop:
		d.requested = d.requested || !e.completed
		err = d.drop(&e)
	case trace.Reserve:
		d.noteFresh(span{e.addr, e.addr + uint64(e.Bytes)})
		err = count(&d.reserved, e.Bytes)
	case trace.Release:
		err = count(&d.released, e.Bytes)
	}
	if err == nil {
		d.events = recording.Append(d.budget, d.events, e.Event)
	}
	return err
}

// drop takes a free. If its address is unknown, the object was live before the window. That is an
// error if its segment was taken within the window.
func (d *device) drop(e *entry) error {
	if _, known := d.objects.Find(d.space, e.addr); !known && d.isFresh(e.addr) {
		return fmt.Errorf("free of address %#x, which was never allocated: its segment was taken in the window", e.addr)
	}
	known, err := d.objects.Drop(&e.Event, e.addr, d.entries)
	if !known {
		d.before = append(d.before, *e)
	}
	return err
}

// isDrop reports whether e, a free_completed, is the only entry about the drop. Usually there is a
// free_requested before it, which PyTorch can be told not to record (skip_actions). Then the object
// became unreachable at this moment or before it.
func (d *device) isDrop(e entry) bool {
	was, known := d.objects.Find(d.space, e.addr)
	if !known && !d.requested { // its free_requested may have been before the window
		d.unknown = append(d.unknown, e)
		d.budget.Hold(unknownBytes)
	}
	if was.Live {
		d.completed++
	}
	return was.Live
}

// skipped says whether PyTorch was told not to record free_requested.
func (d *device) skipped() bool { return !d.requested && d.completed > 0 }

// unknownDrops returns the drops of objects that were live before the window, if free_requested was
// not recorded.
func (d *device) unknownDrops() (drops []trace.Event, err error) {
	if !d.skipped() {
		return nil, nil
	}
	seen := make(map[uint64]bool)
	for _, e := range d.unknown {
		if seen[e.addr] {
			continue
		}
		seen[e.addr] = true
		e.Space = d.space
		if e.ID, err = d.objects.New(e.Bytes); err != nil {
			return nil, err
		}
		d.before = append(d.before, e)
		drops = recording.Append(d.budget, drops, e.Event)
		d.completed++
	}
	return drops, nil
}

// noteFresh remembers a segment taken in the window. Beyond maxFresh, segments count as older than
// the window.
func (d *device) noteFresh(sp span) {
	if len(d.fresh) >= maxFresh {
		return
	}
	i, found := slices.BinarySearchFunc(d.fresh, sp.from, compareFrom)
	if found {
		d.fresh[i].to = max(d.fresh[i].to, sp.to)
		return
	}
	d.fresh = slices.Insert(d.fresh, i, sp)
}

func (d *device) isFresh(addr uint64) bool {
	i, found := slices.BinarySearchFunc(d.fresh, addr, compareFrom)
	return found || i > 0 && addr < d.fresh[i-1].to
}

func compareFrom(s span, from uint64) int { return cmp.Compare(s.from, from) }

// start returns the time of the first Alloc or Drop, or else of the first event.
func (d *device) start() int64 {
	if d.skipped() && len(d.unknown) > 0 {
		return min(d.unknown[0].Time, d.firstEvent())
	}
	return d.firstEvent()
}

func (d *device) firstEvent() int64 {
	for _, e := range d.events {
		if e.Kind == trace.Alloc || e.Kind == trace.Drop {
			return e.Time
		}
	}
	if len(d.events) > 0 {
		return d.events[0].Time
	}
	return math.MaxInt64
}

// liveBefore returns the objects that the device held before its first entry, as Allocs by address,
// and the bytes of its segments then.
func (d *device) liveBefore() (allocs []entry, reserved int64, err error) {
	for _, b := range d.held {
		if _, known := d.objects.Find(d.space, b.addr); known {
			continue
		}
		e := entry{addr: b.addr, Event: trace.Event{Space: d.space, Bytes: b.size, Stream: b.stream}}
		if err := d.objects.Alloc(&e.Event, e.addr, 0); err != nil {
			return nil, 0, err
		}
		d.before = append(d.before, e)
	}
	slices.SortFunc(d.before, func(a, b entry) int { return cmp.Compare(a.addr, b.addr) })
	return d.before, d.reservedEnd + d.released - d.reserved, nil
}
