package cuda

import "sync"

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
