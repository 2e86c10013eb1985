package cuda

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
)

var (
	oraclePrograms = flag.Int("programs", 500, "random programs of TestPrograms, for each schedule of the simulated driver")
	oracleSeed     = flag.Uint64("program", 0, "the first random program of TestPrograms")
	oracleTime     = flag.Duration("programs-for", 0, "begin no program of TestPrograms later than that; 0: no limit")
	oracleMemories = flag.String("memories", "device,segments,stream-ordered,pinned,managed", "memories of the programs")
)

// TestPrograms runs random programs over arrays in every memory, streams, copies of all kinds, fills,
// kernels, graphs, frees, cycles and up to two devices, and compares each element that they
// read with what a plain interpreter has.
func TestPrograms(t *testing.T) {
	open(t)
	for _, schedule := range schedules() {
		t.Run(schedule.name, func(t *testing.T) {
			var w *world
			begin, n := time.Now(), 0
			defer func() { t.Logf("%d programs from %d on", n, *oracleSeed) }() // also when one fails
			for ; n < *oraclePrograms && (*oracleTime == 0 || time.Since(begin) < *oracleTime); n++ {
				seed := *oracleSeed + uint64(n)
				schedule.set(t, seed)
				if w == nil || n%schedule.together == 0 {
					w.close(t)
					w = newWorld(t, seed)
				}
				w.run(t, seed)
			}
			w.close(t)
		})
	}
}

// A world is what programs run in.
type world struct {
	first   uint64 // program
	held    int
	random  *rand.Rand
	devices []*Device
	modules []*Module
	mix     []*Kernel // by device
	work    []*Work
	pools   []*pool.Pool
	drivers []*DriverPool
	collect *gc.Collector
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{first: seed, held: held(), random: rand.New(rand.NewPCG(seed, 3)),
		collect: must[*gc.Collector](t)(gc.New(gc.Config{Idle: -1, Policy: policy.MustParse("never").New()}))}
	w.open(t)
	return w
}

// open opens one more device, with a pool for each kind of memory. All of them take less than
// 250 MiB, of which 8 MiB are managed memory.
func (w *world) open(t *testing.T) {
	d := must[*Device](t)(Open(len(w.devices)))
	d.pollFor = 0
	driver := must[*DriverPool](t)(d.NewDriverPool(-1))
	w.devices, w.drivers = append(w.devices, d), append(w.drivers, driver)
	w.modules = append(w.modules, must[*Module](t)(d.Load(mixPTX)))
	w.mix = append(w.mix, must[*Kernel](t)(w.modules[d.index].Kernel("mix")))
	w.work = append(w.work, must[*Work](t)(NewWork(d)))
	staged := w.random.IntN(2) == 0
	for _, m := range memories(d, driver) {
		if !slices.Contains(strings.Split(*oracleMemories, ","), m.name) {
			continue
		}
		limits := pressure.Limits{Hard: pressure.Limit{Bytes: 16 << 20}}
		switch m.space {
		case pressure.Managed:
			limits.Hard.Bytes = 8 << 20
		case d.Space():
			limits.Hard.Bytes += driverPiece
		}
		p := must[*pool.Pool](t)(pool.New(pool.Config{Upstream: m.up, Space: m.space, Direct: m.direct, Collector: w.collect,
			Limits: limits, Warn: func(err error) { t.Error(err) }}))
		if w.pools = append(w.pools, p); m.space == pressure.Pinned && staged {
			d.StageThrough(p)
		}
	}
	if w.random.IntN(3) == 0 {
		d.SyncThrough(w.pools[0])
	}
}

func (w *world) close(t *testing.T) {
	if w == nil {
		return
	}
	for _, p := range w.pools {
		for end := time.Now().Add(10 * time.Second); p.Sample().Live > 0 && time.Now().Before(end); time.Sleep(time.Millisecond) { // releases may be late
		}
		if live := p.Sample().Live; live != 0 {
			t.Errorf("%d bytes of %v are live at the end", live, p.Space())
		}
		p.Close()
	}
	w.collect.Close()
	for i, d := range w.devices {
		ok(t, errors.Join(d.Synchronize(), w.drivers[i].Close(), w.work[i].Close(), w.modules[i].Close()))
	}
	for _, d := range w.devices {
		for end := time.Now().Add(10 * time.Second); d.slices != nil && d.slices.pool.Sample().Live > 0 && time.Now().Before(end); { // slices that were dropped
			d.slices.pool.Reclaim(pool.StepCollect)
		}
		ok(t, d.Close())
	}
	if n := held() - w.held; n > 0 {
		t.Errorf("%d pieces of memory are left", n)
	}
}

// A program is one run of random steps.
type program struct {
	*testing.T
	*world
	*rand.Rand
	seed    uint64
	log     []string
	streams []*Stream
	arrays  []*oneArray
	graphs  []*oneGraph
	into    *oneGraph // being captured
	dropped bool      // an array
	crowded bool      // large arrays of device memory come and go, at the limit
}

type oneArray struct {
	array.Array[uint32]
	plain *plainArray
	name  string
}

type oneGraph struct {
	*Graph
	plainGraph
	stream *Stream
	uses   []*oneArray
}

func (w *world) run(t *testing.T, seed uint64) {
	p := &program{T: t, world: w, Rand: rand.New(rand.NewPCG(seed, 2)), seed: seed, crowded: seed%4 == 1}
	stuck := time.AfterFunc(5*time.Minute, func() {
		panic(fmt.Sprintf("program %d does not end, in the world of program %d\n%s", seed, w.first, strings.Join(p.log, "\n")))
	})
	defer func() {
		stuck.Stop()
		if e := recover(); e != nil || t.Failed() {
			t.Errorf("program %d, in the world of program %d: %v\n%s\n%s", seed, w.first, e, strings.Join(p.log, "\n"), debug.Stack())
			t.FailNow()
		}
	}()
	p.streams = []*Stream{w.devices[0].Default(), p.stream(), p.stream()}
	for range 2 {
		p.create()
	}
	for range 10 + p.IntN(40) {
		p.step()
	}
	for _, a := range p.arrays {
		p.compare(a, false)
	}
	for _, g := range p.graphs {
		p.no(g.Close())
	}
	for _, a := range p.arrays {
		a.Free()
	}
	for _, s := range p.streams {
		p.no(s.Close())
	}
	if p.dropped {
		p.collect.Collect(policy.TriggerExplicit)
	}
}

func (p *program) say(format string, args ...any) {
	p.log = append(p.log, fmt.Sprintf(format, args...))
}

// no ends the program if there is an error.
func (p *program) no(err error) {
	if err != nil {
		panic(err)
	}
}

func (p *program) stream() *Stream {
	s, err := p.devices[p.IntN(len(p.devices))].NewStream()
	p.no(err)
	return s
}

func pick[T any](p *program, all []T) T { return all[p.IntN(len(all))] }

// create makes an array, if there is memory for it.
func (p *program) create() {
	windows, n := 1, cells
	from, s := pick(p, p.pools), pick(p, p.streams)
	if p.IntN(8) == 0 && !p.crowded {
		p.register(s.dev)
		return
	}
	if p.crowded {
		from = p.pools[0]
	}
	if p.IntN(12) == 0 || p.crowded {
		windows, n = 2, 1<<19+p.IntN(1<<19)
	}
	if p.crowded {
		n = (1 + p.IntN(2)) << 19 // whole chunks, so that the windows of one array lie where those of another lay
	}
	made, err := array.New[uint32](from, n, array.On(s.ID()))
	name := fmt.Sprintf("a%d", len(p.log))
	p.say("%s = new of %d in %v for stream %d: %v", name, n, from.Upstream(), s.ID(), err)
	if err != nil {
		if !errors.Is(err, pool.ErrOutOfMemory) && p.into == nil { // the driver's pool refuses streams that capture
			p.no(err)
		}
		return
	}
	p.arrays = append(p.arrays, &oneArray{made, newPlainArray(windows), name})
}

// register makes an array of a slice.
func (p *program) register(d *Device) {
	a := &oneArray{plain: newPlainArray(1), name: fmt.Sprintf("r%d", len(p.log))}
	p.say("%s = a slice for %v", a.name, d)
	from := make([]uint32, 2048)[:cells] // no other slice lies on its pages
	plainWrite(place{a.plain, 0}, from)()
	var err error
	if a.Array, err = Register(d, from); errors.Is(err, pool.ErrOutOfMemory) { // beside what is pinned
		return
	}
	p.no(err)
	p.arrays = append(p.arrays, a)
}

// window returns a part of an array.
func (a *oneArray) window(k int) array.Array[uint32] {
	if k == 0 {
		return a.View(0, cells)
	}
	return a.View(a.Len()-cells, a.Len())
}

// some returns a part of some array, to work on.
func (p *program) some() (a *oneArray, here array.Array[uint32], there place) {
	a = pick(p, p.arrays)
	k := p.IntN(len(a.plain.data))
	return a, a.window(k), place{a.plain, k}
}

// done notes work that was given to a stream: it is done now, or is of the graph.
func (p *program) done(s *Stream, work plainWork, err error, uses ...*oneArray) {
	if errors.Is(err, array.ErrReach) && len(p.devices) > 1 { // another device, which cannot use it
		return
	}
	p.no(err)
	if g := p.into; g != nil && g.stream == s {
		g.plainGraph, g.uses = append(g.plainGraph, work), append(g.uses, uses...)
		return
	}
	work()
}

// step does something.
func (p *program) step() {
	if len(p.arrays) == 0 {
		p.create()
		return
	}
	switch n := p.IntN(100); {
	case n < 10 || p.crowded && n < 25:
		p.create()
	case p.crowded && n < 35:
		p.freeBusy()
	case n < 50:
		p.give(pick(p, p.streams))
	case n < 66:
		p.method()
	case n < 74:
		a, _, _ := p.some()
		p.compare(a, false)
	case n < 84:
		p.graph()
	case n < 91:
		p.drop()
	case n < 96:
		p.wait()
	default:
		p.change()
	}
}

// give gives work to a stream, which may capture.
func (p *program) give(s *Stream) {
	a, x, px := p.some()
	b, y, py := p.some()
	k := p.Uint32()
	switch p.IntN(7) {
	case 0, 1, 2:
		shared := pick(p, []Shared{4 * cells, 64 << 10}) // a kernel has to be allowed more than 48 KiB
		p.say("mix %s <- %s, %d on stream %d", a.name, b.name, k, s.ID())
		p.done(s, plainMix(px, py, k), Launch(p.mix[s.dev.index], s, Dim{}, Dim{X: cells}, x, y, k, shared), a, b)
	case 3:
		if px != py {
			p.say("copy %s <- %s on stream %d", a.name, b.name, s.ID())
			err := CopyTo(x, y, s)
			_, to := a.memory().Space.Device()
			if _, from := b.memory().Space.Device(); to && from && errors.Is(err, array.ErrReach) {
				panic("a copy between devices needs access")
			}
			p.done(s, plainCopy(px, py), err, a, b)
		}
	case 4:
		k = pick(p, []uint32{k, 0x05050505, 0x01020102}) // patterns of 4 bytes, 1 and 2
		p.say("fill %s with %d on stream %d", a.name, k, s.ID())
		p.done(s, plainFill(px, k), Fill(x, k, s), a)
	case 5:
		p.say("spin on stream %d", s.ID())
		p.no(p.work[s.dev.index].Spin(s, time.Duration(p.IntN(50))*time.Microsecond))
	case 6:
		if s == p.captures() {
			return
		}
		other := pick(p, p.streams) // uses the array while s does
		if other == p.captures() {
			return
		}
		p.say("mix %s on stream %d within a use on stream %d", a.name, other.ID(), s.ID())
		p.done(other, plainMix(px, px, k), With(x, s, func(uintptr) error {
			return Launch(p.mix[other.dev.index], other, Dim{}, Dim{X: cells}, x, x, k, Shared(4*cells))
		}), a)
	}
}

// captures returns the stream that captures.
func (p *program) captures() *Stream {
	if p.into == nil {
		return nil
	}
	return p.into.stream
}

// method calls a method of an array, which is done at once. While a graph is captured it may fail.
func (p *program) method() {
	a, x, px := p.some()
	b, y, py := p.some()
	k := p.Uint32()
	var work plainWork
	var err error
	switch p.IntN(7) {
	case 0, 1:
		data := make([]uint32, cells)
		for i := range data {
			data[i] = p.Uint32()
		}
		work, err = plainWrite(px, data), x.CopyIn(data)
		clear(data)
		p.say("write %s: %v", a.name, err)
	case 2:
		work, err = plainFill(px, k), x.Fill(k)
		p.say("fill %s with %d: %v", a.name, k, err)
	case 3:
		if up := a.memory(); up.Space != b.memory().Space {
			return
		}
		work, err = plainCopy(px, py), x.CopyFrom(y)
		p.say("copy %s from %s: %v", a.name, b.name, err)
	case 4:
		work, err = plainShift(px), x.View(cells/4, cells).CopyFrom(x.View(0, cells-cells/4))
		p.say("shift %s: %v", a.name, err)
	default:
		if _, device := a.memory().Space.Device(); device {
			return
		}
		at := p.IntN(cells)
		if v, err := x.At(at); err == nil && px.get() != nil && v != px.get()[at] {
			panic(fmt.Sprintf("At %d of %s is %d, not %d", at, a.name, v, px.get()[at]))
		}
		work, err = plainSetOne(px, at, k), x.Set(at, k)
		p.say("set %d of %s to %d: %v", at, a.name, k, err)
	}
	if g := p.into; g != nil && (slices.Contains(g.uses, a) && err == nil) {
		panic("the method of an array of the graph has not failed")
	} else if g != nil && err != nil {
		return
	}
	p.no(err)
	work()
}

func (a *oneArray) memory() (found array.Memory) {
	_ = a.Reach(func(m array.Memory) error { found = m; return nil })
	return found
}

// compare reads an array.
func (p *program) compare(a *oneArray, mayFail bool) {
	for k := range a.plain.data {
		got, err := a.window(k).ToSlice()
		p.say("read %s: %v", a.name, err)
		if err != nil && mayFail {
			continue
		}
		p.no(err)
		p.equal(got, place{a.plain, k})
	}
}

func (p *program) equal(got []uint32, want place) {
	if x := want.get(); x != nil && !slices.Equal(got, x) {
		panic(fmt.Sprintf("other elements in window %d:\n got %v\nwant %v", want.window, got, x))
	}
}

// graph captures, launches or closes one.
func (p *program) graph() {
	n := p.IntN(8)
	switch {
	case len(p.graphs) == 0 || n < 2:
		p.capture()
	case n < 7:
		g, s := pick(p, p.graphs), pick(p, p.streams)
		if s.dev != g.stream.dev {
			s = g.stream
		}
		if !slices.Contains(p.streams, s) {
			return
		}
		p.say("launch the graph of stream %d on stream %d", g.stream.ID(), s.ID())
		p.no(g.Launch(s))
		g.launch()
	default:
		k := p.IntN(len(p.graphs))
		p.say("close the graph of stream %d", p.graphs[k].stream.ID())
		if p.no(p.graphs[k].Close()); p.graphs[k].Launch(p.graphs[k].stream) == nil {
			panic("launch of a graph that was closed")
		}
		p.graphs = slices.Delete(p.graphs, k, k+1)
	}
}

func (p *program) capture() {
	s := pick(p, p.streams)
	if s == &s.dev.null {
		return
	}
	p.into = &oneGraph{stream: s}
	p.say("capture on stream %d {", s.ID())
	failing := p.IntN(10) == 0
	g, err := s.Capture(func() error {
		for range 1 + p.IntN(6) {
			switch n := p.IntN(20); {
			case n < 11:
				p.give(s)
			case n < 13:
				p.method()
			case n < 14:
				p.give(pick(p, p.streams))
			case n < 15:
				a, _, _ := p.some()
				p.compare(a, true)
			case n < 17:
				p.create()
			case n < 18:
				p.drop()
			case n < 19:
				p.refused(s)
			default:
				p.no(s.dev.Synchronize())
			}
			if len(p.arrays) == 0 {
				break
			}
		}
		if failing {
			return errStop
		}
		return nil
	})
	p.say("}: %v", err)
	made := p.into
	p.into = nil
	if failing && errors.Is(err, errStop) {
		return
	}
	p.no(err)
	made.Graph = g
	p.graphs = append(p.graphs, made)
}

var errStop = errors.New("stop")

// refused asks what a stream that captures cannot do.
func (p *program) refused(s *Stream) {
	_, allocated := p.drivers[s.dev.index].alloc(100, s)
	_, captured := s.Capture(func() error { return nil })
	for what, err := range map[string]error{"synchronize": s.Synchronize(), "close": s.Close(),
		"allocation": allocated, "prefetch": s.Prefetch(0, 1, 0), "capture": captured} {
		if err == nil || !strings.Contains(err.Error(), "cannot be part of a graph") {
			panic(fmt.Sprint(what, " while the stream captures: ", err))
		}
	}
	for _, g := range p.graphs {
		if g.Launch(s) == nil {
			panic("launch of a graph while the stream captures")
		}
	}
}

// drop frees an array, or forgets it and runs a cycle.
func (p *program) drop() {
	k := p.IntN(len(p.arrays))
	a := p.arrays[k]
	p.arrays = slices.Delete(p.arrays, k, k+1)
	if p.IntN(8) == 0 {
		p.say("drop %s", a.name)
		a.Array = array.Array[uint32]{}
		if p.dropped = true; p.IntN(4) == 0 {
			p.collect.Collect(policy.TriggerExplicit)
		}
		return
	}
	p.say("free %s", a.name)
	a.Free()
	if err := With(a.Array, p.streams[0], func(uintptr) error { return nil }); !errors.Is(err, array.ErrFreed) {
		panic(fmt.Sprint("use after Free: ", err))
	}
}

// freeBusy makes an array, has its stream write to it, and frees it meanwhile. Another stream, which may get the memory, writes and
// reads; what it has written is still there when the first stream has ended.
func (p *program) freeBusy() {
	s, n, k := pick(p, p.streams), (1+p.IntN(2))<<19, p.Uint32()
	filled := func(s *Stream, k uint32) *oneArray {
		made, err := array.New[uint32](p.pools[0], n, array.On(s.ID()))
		a := &oneArray{made, newPlainArray(2), fmt.Sprintf("b%d", len(p.log))}
		p.say("%s = new of %d for stream %d, filled with %d: %v", a.name, n, s.ID(), k, err)
		if errors.Is(err, pool.ErrOutOfMemory) {
			return nil
		}
		p.no(err)
		for w := range 2 {
			p.no(p.work[s.dev.index].Spin(s, 10*time.Microsecond))
			p.done(s, plainFill(place{a.plain, w}, k), Fill(a.window(w), k, s))
		}
		return a
	}
	if a := filled(s, k); a != nil {
		a.Free()
	}
	if a := filled(pick(p, p.streams), k+1); a != nil {
		p.arrays = append(p.arrays, a)
		p.compare(a, false)
		p.say("wait for stream %d", s.ID())
		p.no(s.Synchronize())
		p.compare(a, false)
	}
}

func (p *program) wait() {
	s := pick(p, p.streams)
	p.say("wait for stream %d", s.ID())
	switch p.IntN(3) {
	case 0:
		p.no(s.Synchronize())
	case 1:
		p.no(s.dev.Synchronize())
	case 2:
		for _, x := range p.pools {
			x.FreeAllBlocks()
		}
	}
}

// change replaces a stream, or opens the second device.
func (p *program) change() {
	if n, _ := Count(); n > len(p.devices) && n <= 2 && p.IntN(2) == 0 {
		p.say("open device %d", len(p.devices))
		p.world.open(p.T)
		p.streams = append(p.streams, p.devices[1].Default(), p.stream())
		return
	}
	k := 1 + p.IntN(len(p.streams)-1)
	s := p.streams[k]
	if s == &s.dev.null {
		return
	}
	p.streams[k] = p.stream()
	p.say("close stream %d for %d", s.ID(), p.streams[k].ID())
	p.no(s.Close())
	for i, a := range p.arrays {
		if a.memory().LastStream() == s.ID() && p.IntN(2) == 0 {
			p.say("free %s, which it used last", a.name)
			a.Free()
			p.arrays = slices.Delete(p.arrays, i, i+1)
			break
		}
	}
}

// mixPTX is out[i] = 5 * in[n-1-i] + k, an element to each of the n threads of one block. It
// takes 4 bytes of dynamic shared memory for each.
const mixPTX = `
.version 6.0
.target sm_50
.address_size 64
.extern .shared .align 4 .b8 scratch[];
.visible .entry mix(.param .u64 out, .param .u64 in, .param .u32 k)
{
	.reg .b32 %r<8>;
	.reg .b64 %d<4>;
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, %ntid.x;
	mul.wide.u32 %d1, %r1, 4;
	ld.param.u64 %d2, [in];
	ld.param.u64 %d3, [out];
	ld.param.u32 %r3, [k];
	add.u64 %d2, %d2, %d1;
	add.u64 %d3, %d3, %d1;
	ld.global.u32 %r4, [%d2];
	mov.u32 %r5, scratch;
	mad.lo.u32 %r6, %r1, 4, %r5;
	st.shared.u32 [%r6], %r4;
	bar.sync 0;
	sub.u32 %r7, %r2, %r1;
	sub.u32 %r7, %r7, 1;
	mad.lo.u32 %r6, %r7, 4, %r5;
	ld.shared.u32 %r4, [%r6];
	mad.lo.u32 %r4, %r4, 5, %r3;
	st.global.u32 [%d3], %r4;
	ret;
}`
