package gc_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

// The oracle of recordings: whatever a program does while it is recorded, the file validates and replays, and its live bytes are
// those that the program had whenever its goroutines rest. The model is a sum for each memory, which the program itself keeps.

var recordings = flag.Duration("recordings", 0, "how long random programs are recorded; 0: a few programs")

// A recording is a sink whose file can be read at any time.
type recording interface {
	trace.Sink
	read() (*trace.Trace, error)
}

// A tape checks each event when it comes.
type tape struct {
	mu    sync.Mutex
	t     trace.Trace
	made  time.Time
	known map[uint64]trace.Event // the Allocs of the objects that are there
	wrong error                  // the first event that makes no sense
}

func newTape() *tape {
	return &tape{made: time.Now(), known: make(map[uint64]trace.Event), t: trace.Trace{Labels: []string{""}}}
}

func (s *tape) Now() time.Duration { return time.Hour + time.Since(s.made) }

func (s *tape) Label(text string) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.t.Labels, text)
	if i < 0 {
		i, s.t.Labels = len(s.t.Labels), append(s.t.Labels, text)
	}
	return uint32(i)
}

func (s *tape) Record(e trace.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, known := s.known[e.ID]
	switch {
	case e.Kind == trace.Alloc && known:
		s.wrong = fmt.Errorf("allocated twice: %+v", e)
	case e.Kind == trace.Free && (!known || was.Bytes != e.Bytes || was.Space != e.Space):
		s.wrong = fmt.Errorf("freed, and was %+v (%v): %+v", was, known, e)
	case e.Kind == trace.Alloc:
		s.known[e.ID] = e
	case e.Kind == trace.Free:
		delete(s.known, e.ID)
	}
	s.t.Record(e)
}

func (s *tape) read() (*trace.Trace, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.t
	t.Events = slices.Clone(t.Events)
	trace.Sort(t.Events)
	return &t, s.wrong
}

// A filed recording is a file.
type filed struct {
	*trace.Recorder
	*bytes.Buffer
}

func newFiled(t *testing.T) filed {
	var to bytes.Buffer
	w, err := trace.NewWriter(&to, &trace.Trace{})
	if err != nil {
		t.Fatal(err)
	}
	r := trace.NewRecorder(w, trace.RecorderConfig{Interval: time.Hour})
	t.Cleanup(func() { r.Close() })
	return filed{r, &to}
}

func (s filed) read() (*trace.Trace, error) {
	if err := s.Flush(); err != nil {
		return nil, err
	}
	return readCut(s.Bytes())
}

// readCut reads a file that has not ended.
func readCut(file []byte) (*trace.Trace, error) {
	t, err := trace.Read(bytes.NewReader(file))
	if errors.Is(err, trace.ErrTruncated) {
		err = nil
	}
	return t, err
}

// The memories of the program. Two pools share one of them.
const (
	ofCollector = pressure.Pinned
	ofPools     = pressure.Host
	ofThird     = pressure.Managed
)

// levels are the live bytes of each memory.
type levels [3]int64

// levelsOf validates a recording and adds up what is live at its end.
func levelsOf(s recording) (now levels, err error) {
	t, err := s.read()
	if err == nil {
		err = t.Validate()
	}
	if err != nil {
		return now, err
	}
	for _, e := range t.Events {
		switch e.Kind {
		case trace.Alloc:
			now[e.Space] += e.Bytes
		case trace.Free:
			now[e.Space] -= e.Bytes
		}
	}
	return now, nil
}

type boxed struct{ _ [4]*int }

// A recorded program has memory of all kinds, and knows what is live.
type recorded struct {
	c       *gc.Collector
	pools   [3]*pool.Pool
	library *pressure.Counter
	live    [3]atomic.Int64
}

// A worker is one of its goroutines, with memory of its own.
type worker struct {
	*recorded
	rng              *rand.Rand
	owners           []held
	counted          []held // owners whose memory is given back without a release
	account, library int64
	blocks           []block
}

type held struct {
	owner *boxed
	bytes *atomic.Int64 // that it holds
	h     gc.Handle
}

type block struct {
	pool.Block
	from  *pool.Pool
	bytes int64
}

func (b block) free(p *recorded) {
	p.live[b.from.Space()].Add(-b.bytes)
	b.from.Free(b.Block)
}

func (w *worker) step() {
	size := 1 + w.rng.Int64N(10_000)
	switch w.rng.IntN(12) {
	case 0, 1:
		w.own(size)
	case 2, 3:
		if x := w.pick(w.owners); x != nil {
			was := x.bytes.Swap(size)
			w.live[ofCollector].Add(size - was)
			x.h.Resize(size)
		}
	case 4:
		if x := w.pick(w.owners); x != nil {
			x.h.Release()
			w.owners = without(w.owners, x)
		}
	case 5:
		if x := w.pick(w.owners); x != nil { // a cycle gives it back
			w.owners = without(w.owners, x)
		}
	case 6:
		w.count(size)
	case 7:
		w.account = w.move(w.account, size, w.c.Account)
	case 8:
		w.library = w.move(w.library, size, func(bytes int64) {
			if bytes > 0 {
				w.recorded.library.Add(bytes)
			} else {
				w.recorded.library.Sub(-bytes)
			}
		})
	case 9, 10:
		w.alloc(size)
	case 11:
		if n := len(w.blocks); n > 0 {
			i := w.rng.IntN(n)
			w.blocks[i].free(w.recorded)
			w.blocks = slices.Delete(w.blocks, i, i+1)
		}
	}
}

func (w *worker) own(size int64) {
	x := held{new(boxed), new(atomic.Int64), gc.Handle{}}
	x.bytes.Store(size)
	w.live[ofCollector].Add(size)
	x.h = gc.Own(w.c, x.owner, size, func(bytes *atomic.Int64) { w.live[ofCollector].Add(-bytes.Load()) }, x.bytes)
	w.owners = append(w.owners, x)
}

// count counts an owner, or gives one back.
func (w *worker) count(size int64) {
	if x := w.pick(w.counted); x != nil && w.rng.IntN(2) == 0 {
		w.live[ofCollector].Add(-x.bytes.Load())
		x.h.Release()
		w.counted = without(w.counted, x)
		return
	}
	x := held{new(boxed), new(atomic.Int64), gc.Handle{}}
	x.bytes.Store(size)
	w.live[ofCollector].Add(size)
	x.h = gc.Count(w.c, x.owner, size)
	w.counted = append(w.counted, x)
}

// move counts bytes more, or some of those that are counted less.
func (w *worker) move(counted, size int64, by func(int64)) int64 {
	if w.rng.IntN(2) == 0 && counted > 0 {
		size = -1 - w.rng.Int64N(counted)
	} else if w.rng.IntN(2) == 0 {
		size = 100 // so that some have one size
	}
	w.live[ofCollector].Add(size)
	by(size)
	return counted + size
}

// alloc takes a block of a pool, and leaves some to a cycle.
func (w *worker) alloc(size int64) {
	b := block{from: w.pools[w.rng.IntN(len(w.pools))], bytes: (size + 511) / 512 * 512}
	w.live[b.from.Space()].Add(b.bytes)
	b.Block, _ = b.from.Alloc(size, uint32(w.rng.IntN(2)))
	if w.rng.IntN(3) > 0 {
		w.blocks = append(w.blocks, b)
		return
	}
	w.live[ofCollector].Add(1)
	gc.Own(w.c, new(boxed), 1, func(b block) { b.free(w.recorded); w.live[ofCollector].Add(-1) }, b)
}

func (w *worker) pick(all []held) *held {
	if len(all) == 0 {
		return nil
	}
	return &all[w.rng.IntN(len(all))]
}

func without(all []held, x *held) []held {
	*x = all[len(all)-1]
	all[len(all)-1] = held{}
	return all[:len(all)-1]
}

// agrees waits until the recording has what is live: what a cycle gives back is recorded right after its release.
func (p *recorded) agrees(t *testing.T, s recording, at string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Microsecond) {
		got, err := levelsOf(s)
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		var want levels
		for i := range p.live {
			want[i] = p.live[i].Load()
		}
		if got == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %d bytes are recorded, %d live", at, got, want)
		}
	}
}

func (p *recorded) record(s trace.Sink) {
	p.c.SetRecorder(s)
	for _, from := range p.pools {
		from.SetTrace(s)
	}
}

func TestARecordingHasWhatTheProgramHad(t *testing.T) {
	for began, i := time.Now(), 0; i < 12 || time.Since(began) < *recordings; i++ {
		seed := uint64(time.Now().UnixNano())
		t.Run("", func(t *testing.T) { program(t, seed, 1+i%2*3) })
	}
}

// program runs random steps on goroutines, beside recordings that begin, end and continue at any time, and compares whenever all
// rest.
func program(t *testing.T, seed uint64, goroutines int) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	c, err := gc.New(gc.Config{Policy: policy.Spec{}.New(), Idle: -1, Space: ofCollector})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Listen()
	p := &recorded{c: c, library: pressure.NewCounter(fmt.Sprint("recorded ", seed))}
	for i := range p.pools {
		if p.pools[i], err = pool.New(pool.Config{Collector: c, Space: []pressure.Space{ofPools, ofPools, ofThird}[i]}); err != nil {
			t.Fatal(err)
		}
		defer p.pools[i].Close()
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	workers := make([]*worker, goroutines)
	for i := range workers {
		workers[i] = &worker{recorded: p, rng: rand.New(rand.NewPCG(seed, uint64(i+1)))}
	}
	var all []recording
	on := false
	for round := range 60 {
		at := fmt.Sprintf("seed %d, %d goroutines, round %d", seed, goroutines, round)
		steps := 1 + rng.IntN(20)
		var working sync.WaitGroup
		for _, w := range workers {
			working.Add(1)
			go func() {
				defer working.Done()
				for range steps {
					w.step()
				}
			}()
		}
		switch k := rng.IntN(8); { // beside them
		case k < 2:
			all, on = append(all, []recording{newTape(), newFiled(t)}[k]), true
			p.record(all[len(all)-1])
		case k == 2:
			p.record(nil)
			on = false
		case k == 3 && len(all) > 0: // off and on
			p.record(nil)
			p.record(all[len(all)-1])
			on = true
		case k == 4:
			c.Collect(policy.TriggerExplicit)
		}
		working.Wait()
		if on {
			p.agrees(t, all[len(all)-1], at+fmt.Sprintf(", %T", all[len(all)-1]))
		}
	}
	p.record(nil)
	var before []levels
	for _, s := range all {
		replays(t, s)
		now, _ := levelsOf(s)
		before = append(before, now)
	}
	workers[0].own(1)
	c.Account(5)
	workers[0].alloc(1)
	for i, s := range all {
		if now, err := levelsOf(s); err != nil || now != before[i] {
			t.Errorf("%d bytes, and %d after the end: %v", before[i], now, err)
		}
	}
	for _, w := range workers {
		if w.library > 0 {
			p.library.Sub(w.library)
		}
		for _, b := range w.blocks {
			b.free(p)
		}
	}
	runtime.KeepAlive(workers)
}

// replays writes and reads a recording as a file, validates it, and runs a policy over each memory.
func replays(t *testing.T, s recording) *trace.Trace {
	t.Helper()
	made, err := s.read()
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := trace.Write(&file, made); err != nil {
		t.Fatal(err)
	}
	read, err := trace.Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	if err := read.Validate(); err != nil {
		t.Fatal(err)
	}
	spaces := map[pressure.Space]bool{}
	for _, e := range read.Events {
		if e.Kind == trace.Alloc && !spaces[e.Space] {
			spaces[e.Space] = true
			w, err := sim.Compile(read, e.Space)
			if err != nil {
				t.Fatal(err)
			}
			sim.Run(w, policy.MustParse("pacer").New(), sim.Config{})
		}
	}
	return read
}

// TestARecordingSaysWhereMemoryCameFromAndWhyItWent.
func TestARecordingSaysWhereMemoryCameFromAndWhyItWent(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	s := newTape()
	c, err := gc.New(gc.Config{Policy: policy.Spec{}.New(), Idle: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	older, bytes := new(boxed), new(atomic.Int64)
	old := gc.Own(c, older, 1, func(int) {}, 0)
	c.Account(2)
	bytes.Store(70)
	g := gc.Watch(c, bytes.Load)
	c.SetRecorder(s)
	owner := new(boxed)
	byHand := gc.Own(c, owner, 10, func(int) {}, 0)
	gc.Own(c, new(boxed), 20, func(string) {}, "")
	byHand.Resize(50)
	byHand.Resize(50)
	byHand.Release()
	c.Account(30)
	c.Account(7)
	c.Account(-7)
	c.Account(-12) // all 2 that were there before, and 10 of 30
	old.Release()
	for c.Stats().Freed == 0 {
		c.Collect(policy.TriggerExplicit)
	}
	runtime.KeepAlive(owner)
	runtime.KeepAlive(older)
	for _, level := range []int64{90, 85, 10} { // a gauge's oldest object ends once all of it is gone
		bytes.Store(level)
		g.Look()
	}
	g.Close()
	c.SetRecorder(nil)
	got := map[string]int{}
	for _, e := range replays(t, s).Events {
		switch e.Kind {
		case trace.Alloc:
			site := s.t.Label(e)
			if i := slices.Index([]string{"(before the recording)", "(gauge)"}, site); i < 0 {
				site = "elsewhere"
				if bytes := []byte(s.t.Label(e)); slices.Contains(bytes, '\t') && len(bytes) > 0 {
					site = "here"
				}
			}
			got[fmt.Sprintf("+%d %s", e.Bytes, site)]++
		case trace.Free:
			got[fmt.Sprintf("-%d %s", e.Bytes, map[uint32]string{trace.FreeExplicit: "by hand", trace.FreeCycle: "by a cycle"}[e.Aux])]++
		}
	}
	for _, want := range []string{
		"+1 (before the recording)", "+2 (before the recording)", "+70 (gauge)", "+10 here", "+20 here", "-10 by hand", "+50 here", "-50 by hand",
		"+30 here", "+7 here", "-7 by hand", "-2 by hand", "-30 by hand", "+20 here", "-1 by hand", "-20 by a cycle", "+20 (gauge)", "-70 by hand",
	} {
		if got[want]--; got[want] < 0 {
			t.Errorf("%s is not recorded: %v", want, got)
		}
	}
	for what, n := range got {
		if n > 0 && what != "-70 by a cycle" {
			t.Errorf("%s is recorded %d times too often", what, n)
		}
	}
}
