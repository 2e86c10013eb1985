package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// A Stream is a queue of work on one device, done in order. Its methods are safe for concurrent
// use; the order of calls from several goroutines is the caller's business.
type Stream struct {
	dev *Device
	h   handle
	id  uint32

	// marking is held while an event is recorded behind the work of the stream, and for writing
	// while closed or graph changes.
	marking sync.RWMutex
	closed  atomic.Bool
	tail    handle                // once closed: an event after all of its work
	graph   atomic.Pointer[Graph] // the graph that is being captured; nil: none

	sharedOnce sync.Once
	shared     handle // an event that is waited for at once
	sharedErr  error
}

// NewStream returns a new stream of d. It does not wait for the default stream, nor the default
// stream for it.
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

// ID returns the number of s among the streams of the process, as traces and pools name it. It is
// above 0 and not used again. The ID of a nil stream is 0, as that of the default stream in
// [array.On].
func (s *Stream) ID() uint32 {
	if s == nil {
		return 0
	}
	return s.id
}

// takes fails if work cannot be given to s: it was closed, or it captures and the work cannot be
// part of a graph. An empty name is of work that can.
func (s *Stream) takes(notCaptured string) error {
	switch {
	case s.closed.Load():
		return fmt.Errorf("cuda: stream %d of %v was closed", s.id, s.dev)
	case notCaptured != "" && s.graph.Load() != nil:
		return fmt.Errorf("cuda: stream %d is being captured, and %s cannot be part of a graph", s.id, notCaptured)
	}
	return nil
}

// Close lets the work of s end and gives the stream back, without waiting. Memory that was last
// used on s can still be freed afterwards. Work that is given to s later fails. Close fails while s
// is being captured.
func (s *Stream) Close() error {
	s.marking.Lock()
	defer s.marking.Unlock()
	if s == &s.dev.null || s.closed.Load() {
		return nil
	}
	if err := s.takes("its end"); err != nil {
		return err
	}
	tail, err := eventCreate(s.dev)
	if err == nil {
		err = eventRecord(s, tail)
	}
	s.tail = tail
	events := [2]handle{tail, s.shared}
	runtime.AddCleanup(s, func(d *Device) {
		for _, e := range events {
			if e != 0 {
				(&event{d, e}).Close()
			}
		}
	}, s.dev)
	s.closed.Store(true)
	return errors.Join(err, streamDestroy(s))
}

// last returns the event behind the last work of s, if s is closed or captures, else 0. The caller
// holds marking.
func (s *Stream) last() handle {
	if s.closed.Load() {
		return s.tail
	}
	if g := s.graph.Load(); g != nil {
		return g.begun.h
	}
	return 0
}

// idle asks the driver, without waiting, whether all work of s has ended. Work that is being
// captured does not count.
func (s *Stream) idle() (bool, error) {
	s.marking.RLock()
	defer s.marking.RUnlock()
	if e := s.last(); e != 0 {
		return eventDone(s.dev, e)
	}
	return streamIdle(s)
}

// Synchronize blocks until all work of s has ended. It is a sync point if there is work left. It
// fails while s is being captured.
func (s *Stream) Synchronize() error {
	if s.graph.Load() != nil {
		return s.takes("a wait")
	}
	return s.settle()
}

// settle is Synchronize for a stream that may capture.
func (s *Stream) settle() error {
	if idle, err := s.idle(); idle || err != nil {
		return err
	}
	return s.dev.wait(&s.dev.onStream, s.await)
}

// await blocks until all work of s has ended.
func (s *Stream) await() error {
	return s.dev.poll(s.idle, func() error {
		s.marking.RLock()
		e := s.last()
		s.marking.RUnlock()
		if e != 0 {
			return eventSync(s.dev, e)
		}
		return streamSync(s)
	})
}

// recordEnd records e behind the work of s, which may be closed or capture.
func (s *Stream) recordEnd(e *event) error {
	s.marking.RLock()
	defer s.marking.RUnlock()
	if last := s.last(); last != 0 {
		if err := streamWait(s.dev.Default(), last); err != nil {
			return err
		}
		s = s.dev.Default()
	}
	return eventRecord(s, e.h)
}

// An event is a place in the work of a stream, at which it was recorded last. Nil is one that has
// passed.
type event struct {
	dev *Device
	h   handle
}

func (d *Device) newEvent() (*event, error) {
	h, err := eventCreate(d)
	return &event{d, h}, err
}

// Close gives the event back. Closing the device also gives its events back.
func (e *event) Close() error {
	if e == nil {
		return nil
	}
	return e.dev.whileOpen(func() error { return eventDestroy(e.dev, e.h) })
}

// Done asks the driver, without waiting, whether the work before e has ended, as it has on a device
// that was closed.
func (e *event) Done() (bool, error) {
	if e == nil || e.dev.ended.Load() {
		return true, nil
	}
	return eventDone(e.dev, e.h)
}

// wait blocks until the work before e has ended. It is no sync point: the pool waits while it makes
// room.
func (e *event) wait() error {
	if e == nil || e.dev.ended.Load() {
		return nil
	}
	return eventSync(e.dev, e.h)
}

// streams are all streams of the process, by number: those that are open, and those closed that may
// still have work to do.
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

// devices returns the devices that are open.
func (r *streamTable) devices() (list []*Device) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, s := range r.byID {
		if s == &s.dev.null {
			list = append(list, s.dev)
		}
	}
	return list
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
