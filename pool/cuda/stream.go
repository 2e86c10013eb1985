package cuda

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// A Stream is a queue of work on one device, done in order. Its methods are
// safe for concurrent use; the order of calls from several goroutines is the
// caller's business.
type Stream struct {
	dev    *Device
	h      handle
	id     uint32
	closed atomic.Bool
	tail   handle // once closed: an event after all of its work

	graph atomic.Pointer[Graph] // that is being captured; nil: none

	sharedOnce sync.Once
	shared     handle // an event that is waited for at once
	sharedErr  error
}

// NewStream returns a new stream of d. It does not wait for the default stream,
// nor the default stream for it.
func (d *Device) NewStream() (*Stream, error) {
	s := &Stream{dev: d}
	if err := d.retry(func() (err error) { s.h, err = streamCreate(d); return err }); err != nil {
		return nil, err
	}
	streams.add(s)
	return s, nil
}

// Default returns the device's default stream.
func (d *Device) Default() *Stream { return &d.null }

// Device returns the device that s belongs to.
func (s *Stream) Device() *Device { return s.dev }

// ID returns the number of s among the streams of the process, as traces and
// pools name it. It is above 0 and not used again.
func (s *Stream) ID() uint32 { return s.id }

// Close lets the work of s end and gives the stream back, without waiting.
// Memory that was last used on s can still be freed afterwards. No work may be
// given to s at the same time or later.
func (s *Stream) Close() error {
	if s == &s.dev.null || s.closed.Load() {
		return nil
	}
	tail, err := eventCreate(s.dev, false)
	if err == nil {
		err = eventRecord(s, tail)
	}
	s.tail = tail
	events := [2]handle{tail, s.shared}
	runtime.AddCleanup(s, func(d *Device) {
		for _, e := range events {
			if e != 0 && !d.closed.Load() {
				eventDestroy(d, e)
			}
		}
	}, s.dev)
	s.closed.Store(true)
	return errors.Join(err, streamDestroy(s))
}

// idle asks the driver, without waiting, whether all work of s has ended.
func (s *Stream) idle() (bool, error) {
	if s.closed.Load() {
		return eventDone(s.dev, s.tail)
	}
	return streamIdle(s)
}

// Synchronize blocks until all work of s has ended. It is a sync point if there
// is work left.
func (s *Stream) Synchronize() error {
	if idle, err := s.idle(); idle || err != nil {
		return err
	}
	return s.dev.wait(&s.dev.onStream, s.await)
}

// await blocks until all work of s has ended.
func (s *Stream) await() error {
	return s.dev.poll(s.idle, func() error {
		if s.closed.Load() {
			return eventSync(s.dev, s.tail)
		}
		return streamSync(s)
	})
}

// recordEnd records e behind the work of s, which may be closed.
func (s *Stream) recordEnd(e *event) error {
	if !s.closed.Load() {
		return e.Record(s)
	}
	null := s.dev.Default()
	if err := streamWait(null, s.tail); err != nil {
		return err
	}
	return e.Record(null)
}

// An event is a place in the work of a stream.
type event struct {
	dev *Device
	h   handle
}

// newEvent returns an event of d. Only one made with timing can be given to
// [Elapsed]; one without is cheaper.
func (d *Device) newEvent(timing bool) (*event, error) {
	h, err := eventCreate(d, timing)
	return &event{d, h}, err
}

// Close gives the event back. Those that are left go with the device.
func (e *event) Close() error {
	if e.dev.ended.Load() {
		return nil
	}
	return eventDestroy(e.dev, e.h)
}

// Record puts e behind the work given to s so far. An event can be recorded
// again and is then at the new place.
func (e *event) Record(s *Stream) error { return eventRecord(s, e.h) }

// Done asks the driver, without waiting, whether the work before e has ended.
// An event that was never recorded is done, and so is one of a device that was
// closed.
func (e *event) Done() (bool, error) {
	if e.dev.ended.Load() {
		return true, nil
	}
	return eventDone(e.dev, e.h)
}

// elapsed returns the time between two events with timing, both done, to about
// half a microsecond.
func elapsed(from, to *event) (time.Duration, error) {
	ms, err := eventElapsed(from.dev, from.h, to.h)
	return time.Duration(ms * float64(time.Millisecond)), err
}

// streams are all streams of the process, by number: those that are open, and
// those closed that may still have work to do.
var streams = streamTable{byID: map[uint32]*Stream{}}

type streamTable struct {
	mu   sync.RWMutex
	byID map[uint32]*Stream
	last uint32
}

// add gives s its number.
func (r *streamTable) add(s *Stream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgetEnded()
	r.last++
	s.id = r.last
	r.byID[s.id] = s
}

// forgetEnded drops the closed streams whose work has ended. The caller holds mu.
func (r *streamTable) forgetEnded() {
	for id, s := range r.byID {
		if !s.closed.Load() {
			continue
		}
		if done, err := s.idle(); done && err == nil {
			delete(r.byID, id)
		}
	}
}

func (r *streamTable) get(id uint32) *Stream {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byID[id]
}

func (r *streamTable) remove(s *Stream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byID, s.id)
}

// of returns the streams of one device.
func (r *streamTable) of(d *Device) (list []*Stream) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, s := range r.byID {
		if s.dev == d {
			list = append(list, s)
		}
	}
	return list
}
