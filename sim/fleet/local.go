package fleet

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math/bits"
	"runtime"
	"slices"
	"sync"
)

// Local runs a fleet on the cores of this machine.
//
// Its work is cut into cells, not files: whoever is free takes some cells of a recording
// that is open, and opens the next one if there are none. So one large recording holds
// nobody up. The largest are opened first, for then no large one is left for the end.
type Local struct {
	Mapper  *Mapper
	Cache   *Cache         // nil: nothing is kept
	Workers int            // 0: GOMAXPROCS
	Memory  int64          // bytes of files that are open at once, at least one; 0: 64 MiB
	Limit   int64          // bytes that reading one file may take: see formats.Opener
	Order   uint64         // processes that share a cache take files of like size in different orders
	Each    func(Progress) // told of every job that is done, one at a time; may be nil
}

// Progress is how far a run is.
type Progress struct {
	Jobs, Of     int   // done, and all
	Bytes, Total int64 // of their files
	Cached       int   // jobs that needed no replay
	Broken       int
	Unkept       int   // pages that the cache could not take
	Error        error // why, of the last
}

// Run returns the partial of all sources. Recordings that cannot be read are counted in
// it. An error is the context's, or the machine's: see [IsRecording].
func (l *Local) Run(ctx context.Context, sources []Source) (*Partial, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &run{Local: l, ctx: ctx, cancel: cancel, sources: slices.Clone(sources), sum: &Partial{}}
	slices.SortStableFunc(r.sources, r.inOrder)
	r.wake.L = &r.mu
	r.progress.Of = len(sources)
	for _, s := range sources {
		r.progress.Total += s.Bytes
	}
	stop := context.AfterFunc(ctx, func() { // wake those who wait
		r.mu.Lock()
		defer r.mu.Unlock()
		r.wake.Broadcast()
	})
	defer stop()
	var workers sync.WaitGroup
	for range max(1, cmp.Or(l.Workers, runtime.GOMAXPROCS(0))) {
		workers.Go(r.work)
	}
	workers.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return r.sum, nil
}

// inOrder puts large files first; those of like size are shuffled.
func (l *Local) inOrder(a, b Source) int {
	draw := func(s Source) uint64 {
		h := fnv.New64a()
		fmt.Fprint(h, l.Order, s.Name)
		return h.Sum64()
	}
	return cmp.Or(cmp.Compare(bits.Len64(uint64(b.Bytes)), bits.Len64(uint64(a.Bytes))), cmp.Compare(draw(a), draw(b)))
}

// A run is one call of Local.Run.
type run struct {
	*Local
	ctx     context.Context
	cancel  context.CancelCauseFunc
	sources []Source // largest first

	mu       sync.Mutex
	wake     sync.Cond
	next     int     // of sources
	open     []*open // recordings with cells that nobody has taken
	opening  int     // being read: they may become open
	bytes    int64   // of the files that are open or being read
	sum      *Partial
	progress Progress
}

// work takes what there is to do until there is nothing.
func (r *run) work() {
	for {
		o, from, to, source := r.take()
		switch {
		case o != nil:
			r.replay(o, from, to)
		case source != nil:
			r.read(*source)
		default:
			return
		}
	}
}

// take returns some cells of an open recording, or a source to open, or nothing when all
// is taken.
func (r *run) take() (o *open, from, to int, source *Source) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.ctx.Err() == nil {
		if len(r.open) > 0 {
			o := r.open[0]
			from, to := o.taken, min(len(o.missing), o.taken+o.share())
			if o.taken = to; to == len(o.missing) {
				r.open = r.open[1:]
			}
			return o, from, to, nil
		}
		if r.next < len(r.sources) {
			s := &r.sources[r.next]
			if r.bytes == 0 || r.bytes+r.weight(*s) <= r.memory() {
				r.next++
				r.opening++
				r.bytes += r.weight(*s)
				return nil, 0, 0, s
			}
		} else if r.opening == 0 {
			break
		}
		r.wake.Wait()
	}
	return nil, 0, 0, nil
}

func (r *run) memory() int64 { return cmp.Or(r.Memory, 64<<20) }

// weight is what a source counts of the memory: a large one lies in temporary files and
// leaves room for small ones.
func (r *run) weight(s Source) int64 { return min(s.Bytes, r.memory()/2) }

// share is how many cells of a recording are taken at once: all of a small one, one of
// a large one.
func (o *open) share() int {
	const events = 2_000_000 // replayed in some tens of milliseconds
	f := &o.job.Features
	return int(max(1, events/max(1, f.Allocs+f.Drops+f.Syncs)))
}

// read opens a source, or counts it as done if no replay is needed.
func (r *run) read(s Source) {
	o, err := r.Mapper.prepare(r.ctx, r.Cache, s, r.Limit, 0, r.Mapper.Len())
	switch {
	case err != nil && !IsRecording(err):
		r.cancel(fmt.Errorf("%s: %w", s.Name, err))
	case err != nil:
		r.finish(s, r.Mapper.Fault(s.Name, err), func(p *Progress) { p.Broken++ })
	case len(o.missing) == 0:
		o.close()
		r.finish(s, r.Mapper.Partial(s.Name, o.job, 0, r.Mapper.Len()), func(p *Progress) { p.Cached++ })
	default:
		o.found = make([]Outcome, len(o.missing))
		o.left.Store(int64(len(o.missing)))
		r.mu.Lock()
		r.open = append(r.open, o)
		r.mu.Unlock()
	}
	r.mu.Lock()
	r.opening--
	r.wake.Broadcast()
	r.mu.Unlock()
}

// replay runs some cells of a recording; whoever ends the last one finishes the job.
func (r *run) replay(o *open, from, to int) {
	for k := from; k < to && r.ctx.Err() == nil; k++ {
		o.found[k] = r.Mapper.Run(o.rec, o.missing[k])
	}
	if o.left.Add(int64(from-to)) > 0 || r.ctx.Err() != nil {
		return
	}
	unkept := r.Mapper.keep(r.ctx, r.Cache, o)
	o.close()
	r.finish(o.source, r.Mapper.Partial(o.source.Name, o.job, 0, r.Mapper.Len()), func(p *Progress) {
		if unkept != nil {
			p.Unkept, p.Error = p.Unkept+1, unkept
		}
	})
}

// finish adds what a job says.
func (r *run) finish(s Source, p *Partial, count func(*Progress)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sum.Merge(p)
	r.bytes -= r.weight(s)
	r.progress.Jobs++
	r.progress.Bytes += s.Bytes
	count(&r.progress)
	if r.Each != nil {
		r.Each(r.progress)
	}
	r.wake.Broadcast()
}

// Jobs calls each for every source in order, with what is known of it: from the cache,
// or replayed again. Sources that cannot be read are passed over.
func (l *Local) Jobs(ctx context.Context, sources []Source, each func(Source, *Job) error) error {
	for _, s := range sources {
		j, err := l.Mapper.Complete(ctx, l.Cache, s, l.Limit, 0, l.Mapper.Len())
		switch {
		case context.Cause(ctx) != nil:
			return context.Cause(ctx)
		case err != nil && !IsRecording(err):
			return err
		case err != nil:
			continue
		}
		if err := each(s, j); err != nil {
			return err
		}
	}
	return nil
}
