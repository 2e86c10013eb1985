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
	before  []entry // the Allocs of objects that were live before it
	held    []block // live at the end, by the segments

	reserved    int64 // bytes taken in the window
	released    int64 // bytes given back in the window
	reservedEnd int64 // bytes held at the end, by the segments
}

// count adds n bytes to a sum of sizes, which must stay below 2^62.
func count(sum *int64, n int64) error {
	if n > maxSize-*sum {
		return errors.New("the sizes so far add up to 2^62 bytes or more")
	}
	*sum += n
	return nil
}

// add takes the next entry.
func (d *device) add(e entry) error {
	if e.Time < d.now {
		return fmt.Errorf("time goes backwards: time_us %d after %d", e.Time/1000, d.now/1000)
	}
	d.now, e.Space = e.Time, d.space
	var err error
	switch e.Kind {
	case trace.Alloc:
		err = d.objects.Alloc(&e.Event, e.addr, d.entries)
	case trace.Drop:
		if was, _ := d.objects.Find(d.space, e.addr); e.completed && !was.Live {
			return nil // free_requested said so before
		}
		err = d.drop(&e)
	case trace.Reserve:
		err = count(&d.reserved, e.Bytes)
	case trace.Release:
		err = count(&d.released, e.Bytes)
	}
	if err == nil {
		d.events = recording.Append(d.budget, d.events, e.Event)
	}
	return err
}

// drop takes a free. If its address is unknown, the object was live before the window.
func (d *device) drop(e *entry) error {
	known, err := d.objects.Drop(&e.Event, e.addr, d.entries)
	if !known {
		d.before = append(d.before, *e)
	}
	return err
}

// start returns the time of the first Alloc or Drop, or else of the first event.
func (d *device) start() int64 {
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
