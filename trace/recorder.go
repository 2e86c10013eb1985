package trace

import (
	"cmp"
	"fmt"
	"log/slog"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

// LostLabel is the label of the Mark that a [Recorder] leaves where it lost events; its Bytes says
// how many.
const LostLabel = "recorder: events lost"

// BeforeLabel is the label of objects that were live before a recording began. It stands in place of
// their allocation sites.
const BeforeLabel = "(before the recording)"

// AheadLabel is the label of the Marks that say how far a device is ahead of its program. Until the
// next such Mark or the next Sync, the program can pause for the Duration of the Mark, and that Sync
// ends no later. After a Sync the device is not ahead. A trace without such Marks does not say how far
// the device is ahead.
const AheadLabel = "device ahead"

// SiteRateLabel is the label of the Mark that says that the allocation sites of a space are sampled.
// Its Bytes is the mean number of bytes between two samples. An Alloc without a label was not
// sampled. One with a label stands for 1/(1-exp(-size/rate)) objects of its size.
const SiteRateLabel = "pool: bytes between sampled sites"

// A BatchWriter takes events in batches, as a [Recorder] flushes them. Calls come from one
// goroutine at a time.
type BatchWriter interface {
	// WriteBatch writes events. The Aux of a labelled event is an index into labels, as in a
	// [Trace]. WriteBatch keeps neither slice. It returns the number of events written, from the
	// first. If it is less than all, WriteBatch also returns an error, which ends the recording.
	WriteBatch(events []Event, labels []string) (written int, err error)
	// Close ends the recording.
	Close() error
}

// A RecorderConfig sizes a [Recorder]. The zero value means the defaults.
type RecorderConfig struct {
	Buffer   int           // events held until they are written; 65536, which takes 10 MB in all
	Interval time.Duration // the longest time that an event is held; 250 ms
}

func (c RecorderConfig) orDefault() RecorderConfig {
	return RecorderConfig{cmp.Or(max(0, c.Buffer), defaultBuffer), cmp.Or(max(0, c.Interval), defaultInterval)}
}

// A Recorder takes the events of a running program and writes them in batches, from a goroutine of
// its own. It writes when a buffer is half full, and every Interval. It is a [Sink] whose clock is the
// monotonic time since it was made. A batch is in order of time. An event that took long may have
// begun before the events of the batch before it.
//
// All methods are safe for concurrent use. A nil Recorder is off: its methods do nothing, and
// Record costs one branch.
//
// Once it has begun, a recorder never holds up the program. If events come faster than they can be
// written, it loses some and counts them. The next flush writes that number as a Mark with
// [LostLabel]. If writing fails, the recorder turns itself off for good and logs the error with
// slog.Default. Err and Close return the error, and later events count as lost.
type Recorder struct {
	on     atomic.Bool
	start  time.Time
	shards []shard
	shift  uint8 // from a hash to a shard

	dropped atomic.Int64 // since the last flush

	mu     sync.RWMutex // guards labels, text and number
	labels []string
	text   int // bytes of labels
	number map[string]uint32

	to      BatchWriter // this and the fields below belong to the goroutine
	spare   [][]Event
	batch   []Event
	err     atomic.Pointer[error]
	lost    atomic.Int64
	wake    chan struct{}
	flushes chan chan struct{}
	closing chan struct{}
	done    chan struct{}
	once    sync.Once
}

// A shard is a buffer that few goroutines share.
type shard struct {
	mu     sync.Mutex
	events []Event  // appended to up to its capacity
	half   int      // length at which the writer is woken
	_      [64]byte // keeps the next shard out of the cache lines of this one
}

const (
	defaultBuffer   = 1 << 16
	defaultInterval = time.Second / 4
	maxShards       = 64
	minShard        = 64       // events
	maxLabels       = 1 << 16  // texts, so that memory is bounded; more are otherLabel
	maxText         = 32 << 20 // bytes of them
	otherLabel      = "(too many labels)"
)

// NewRecorder returns a recorder that is on, and that owns w from now on.
func NewRecorder(w BatchWriter, c RecorderConfig) *Recorder {
	c = c.orDefault()
	logShards := bits.Len(uint(min(runtime.GOMAXPROCS(0), maxShards) - 1))
	n := 1 << logShards
	size := max(c.Buffer/n, minShard)
	r := &Recorder{
		start: time.Now(), shards: make([]shard, n), shift: uint8(64 - logShards),
		labels: []string{"", LostLabel}, number: map[string]uint32{"": 0, LostLabel: 1},
		to: w, spare: make([][]Event, n), batch: make([]Event, 0, n*size+1),
		wake: make(chan struct{}, 1), flushes: make(chan chan struct{}),
		closing: make(chan struct{}), done: make(chan struct{}),
	}
	for i := range r.shards {
		r.shards[i].events, r.shards[i].half = make([]Event, 0, size), size/2
		r.spare[i] = make([]Event, 0, size)
	}
	r.on.Store(true)
	go r.run(c.Interval)
	return r
}

// Now returns the time since the recorder was made; 0 if the recorder is nil.
func (r *Recorder) Now() time.Duration {
	if r == nil {
		return 0
	}
	return time.Since(r.start)
}

// Record takes an event as it is. An event of a kind that does not exist counts as lost. A Time
// below 0, of an event that began before the recorder was made, becomes 0. Record does not wait
// until the event is written, and does not allocate.
func (r *Recorder) Record(e Event) {
	if r == nil || !r.on.Load() {
		if r != nil && r.err.Load() != nil {
			r.lost.Add(1)
		}
		return
	}
	if e.Kind >= kinds {
		r.lost.Add(1)
		return
	}
	e.Time = max(0, e.Time)
	// A goroutine stays with one shard as long as its stack stays where it is. That spreads
	// goroutines, and keeps the events of each in order.
	first := pressure.StackHash() >> r.shift
	for i := range uint64(len(r.shards)) { // where it is full, on to the next
		s := &r.shards[(first+i)&uint64(len(r.shards)-1)]
		s.mu.Lock()
		n := len(s.events)
		if n == cap(s.events) {
			s.mu.Unlock()
			continue
		}
		s.events = s.events[:n+1]
		s.events[n] = e
		s.mu.Unlock()
		if n == s.half {
			select {
			case r.wake <- struct{}{}: // the writer flushes soon
			default:
			}
		}
		return
	}
	r.dropped.Add(1)
}

// Label returns the number of text for the Aux of a labelled event. Callers on a hot path keep it.
// A recorder keeps at most 65536 texts. All others share the number of "(too many labels)".
func (r *Recorder) Label(text string) uint32 {
	if r == nil {
		return 0
	}
	r.mu.RLock()
	n, ok := r.number[text]
	r.mu.RUnlock()
	if ok {
		return n
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.labels) >= maxLabels || r.text+len(text) > maxText {
		text = otherLabel
	}
	if n, ok = r.number[text]; !ok {
		n = uint32(len(r.labels))
		r.labels = append(r.labels, text)
		r.text += len(text)
		r.number[text] = n
	}
	return n
}

// Lost returns the number of events that were lost. It includes all events since writing failed, and
// those that came faster than they were written, up to the last flush.
func (r *Recorder) Lost() int64 {
	if r == nil {
		return 0
	}
	return r.lost.Load()
}

// Err returns the first error of writing, or nil.
func (r *Recorder) Err() error {
	if r == nil {
		return nil
	}
	if err := r.err.Load(); err != nil {
		return *err
	}
	return nil
}

// Flush writes the events recorded before the call, waits until they are written, and returns Err.
func (r *Recorder) Flush() error {
	if r == nil {
		return nil
	}
	written := make(chan struct{})
	select {
	case r.flushes <- written:
		<-written
	case <-r.done:
	}
	return r.Err()
}

// Close writes the recorded events, closes the writer, and returns the first error of either. The
// recorder is off from then on. Further calls wait for the first and return the same error.
func (r *Recorder) Close() error {
	if r == nil {
		return nil
	}
	r.once.Do(func() {
		close(r.closing)
		r.on.Store(false)
	})
	<-r.done
	return r.Err()
}

// run is the goroutine that writes.
func (r *Recorder) run(interval time.Duration) {
	defer close(r.done)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		var asked chan struct{}
		select {
		case <-tick.C:
		case <-r.wake:
		case asked = <-r.flushes:
		case <-r.closing:
			r.flush()
			r.fail(r.to.Close())
			return
		}
		r.flush()
		if asked != nil {
			close(asked)
		}
	}
}

// flush writes the events of the shards. It takes all of them at one moment, so that no batch frees
// an object that a later batch allocates.
func (r *Recorder) flush() {
	for i := range r.shards {
		r.shards[i].mu.Lock()
	}
	for i := range r.shards {
		s := &r.shards[i]
		s.events, r.spare[i] = r.spare[i][:0], s.events
	}
	for i := range r.shards {
		r.shards[i].mu.Unlock()
	}
	batch := r.batch[:0]
	for _, events := range r.spare {
		batch = append(batch, events...)
	}
	lost := r.dropped.Swap(0)
	r.lost.Add(lost)
	if r.Err() != nil {
		r.lost.Add(int64(len(batch)))
		return
	}
	mark := Event{Time: int64(r.Now()), Kind: Mark, Bytes: lost, Aux: r.Label(LostLabel)}
	if lost > 0 {
		batch = append(batch, mark)
	}
	if len(batch) == 0 {
		return
	}
	if !slices.IsSortedFunc(batch, recorded) { // those of one goroutine mostly are
		slices.SortStableFunc(batch, recorded)
	}
	r.mu.RLock()
	labels := r.labels
	r.mu.RUnlock()
	if written, err := r.to.WriteBatch(batch, labels); err != nil {
		batch = batch[written:]
		r.lost.Add(int64(len(batch)))
		if lost > 0 && slices.Contains(batch, mark) { // the mark is no event of the program
			r.lost.Add(-1)
		}
		r.fail(err)
	}
}

// recorded orders the events of a batch. At one time of the clock an object is allocated before it
// is freed, and kinds are in that order.
func recorded(a, b Event) int {
	return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Kind, b.Kind))
}

// fail keeps the first error, and turns the recorder off.
func (r *Recorder) fail(err error) {
	if err == nil || r.Err() != nil {
		return
	}
	err = fmt.Errorf("trace: recorder: %w", err)
	r.err.Store(&err)
	r.on.Store(false)
	slog.Default().Error("eagergc: the recording has failed; events from now on are lost", slog.Any("error", err))
}
