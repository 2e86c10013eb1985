package kineto

import (
	"cmp"
	"slices"
	"sort"
	gotime "time"

	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

// A job is work of a device: a kernel, a copy or a fill. Times are ns from base.
type job struct {
	correlation        int64 // with the call that launched it
	launch, begin, end int64
	toHost, pageable   bool // a copy from a device to memory of the host, and whether that is pageable
}

// A launch is a call of the runtime or the driver that may have launched jobs.
type launch struct {
	correlation, ns, dur int64
	index                int32 // in traceEvents
	thread               uint32
	copies               bool // copies, and returns when the copy is done
}

// ahead adds rows that say how far a device was ahead of its program: for how long the program could
// have paused so that the next wait ended no later.
//
// A pause of length p delays all later launches by p. A job that was queued for a time q before it
// began is delayed by p - q. If the device idled for a time i after the job, the end of the work is
// delayed by p - q - i. The wait also absorbs a pause up to its own length. So the program can pause
// for the least q + i of the jobs launched after the pause, and at most for the length of the wait.
func (p *profile) ahead() {
	jobs := p.match()
	if len(jobs) == 0 || len(p.rows) == 0 {
		return
	}
	var syncs []row
	for _, ro := range p.rows {
		if ro.class == classSync {
			syncs = append(syncs, ro)
		}
	}
	slices.SortFunc(syncs, func(a, b row) int { return cmp.Compare(a.ns+a.dur, b.ns+b.dur) })
	idle := idleOf(jobs)
	quickest := jobs[0].begin - jobs[0].launch // the shortest time from a launch to its job
	for _, j := range jobs {
		quickest = min(quickest, j.begin-j.launch)
	}
	label := p.labels.Label(trace.AheadLabel)
	mark := func(ns, ahead int64) {
		p.rows = recording.Append(p.budget, p.rows, row{ns: ns, dur: ahead, class: classMark, label: label, index: int32(p.events)})
	}
	mark(jobs[0].launch, 0) // so that the trace has such Marks in any case
	before := int64(0)      // jobs launched before the last wait was over
	for _, s := range syncs {
		all := jobs[before:]
		all = all[:sort.Search(len(all), func(i int) bool { return all[i].launch >= s.ns })]
		before += int64(len(all))
		absorbed(all, s, idle, max(0, quickest), mark)
	}
}

// absorbed adds the marks of one wait: how long a pause it absorbs after the launch of each job that
// it waits for.
func absorbed(jobs []job, wait row, idle idleTimes, quickest int64, mark func(ns, ahead int64)) {
	until := wait.ns + wait.dur
	done := int64(0) // end of the last job that the wait is for
	for _, j := range jobs {
		if j.end <= until {
			done = max(done, j.end)
		}
	}
	amounts := make([]int64, len(jobs)) // of a pause just after the launch of each
	ahead := wait.dur
	for i := len(jobs) - 1; i >= 0; i-- {
		amounts[i] = ahead
		if j := jobs[i]; j.end <= until {
			queued := max(0, j.begin-j.launch-quickest)
			ahead = min(ahead, queued+idle.before(done)-idle.before(j.end)+max(0, wait.ns-done))
		}
	}
	last, step := int64(0), max(leastStep, wait.dur/stepsOfWait)
	for i, j := range jobs {
		if amounts[i] >= last+step {
			mark(j.launch, amounts[i])
			last = amounts[i]
		}
	}
}

// A mark follows the mark before it only if it is larger by a step.
const (
	leastStep   = int64(10 * gotime.Microsecond)
	stepsOfWait = 20
)

// match returns the jobs whose launch is known, in the order of their launches. It adds the waits of
// calls that copy to the host.
func (p *profile) match() (jobs []job) {
	launches := p.launches
	slices.SortFunc(launches, func(a, b launch) int { return cmp.Compare(a.correlation, b.correlation) })
	for _, j := range p.jobs {
		i, ok := slices.BinarySearchFunc(launches, j.correlation, func(l launch, c int64) int { return cmp.Compare(l.correlation, c) })
		if ok && launches[i].ns <= j.begin {
			l := launches[i]
			j.launch = l.ns
			jobs = append(jobs, j)
			if j.toHost && (j.pageable || l.copies) {
				p.rows = recording.Append(p.budget, p.rows, row{ns: l.ns, dur: l.dur, thread: l.thread, class: classSync, index: l.index})
			}
		}
	}
	p.launches = nil
	slices.SortFunc(jobs, func(a, b job) int { return cmp.Or(cmp.Compare(a.launch, b.launch), cmp.Compare(a.begin, b.begin)) })
	return jobs
}

// idleTimes has, for each moment at which the device began to work again, the time for which it had
// idled until then.
type idleTimes []struct{ begin, sum int64 }

func idleOf(jobs []job) (idle idleTimes) {
	sorted := slices.Clone(jobs)
	slices.SortFunc(sorted, func(a, b job) int { return cmp.Compare(a.begin, b.begin) })
	end, sum := sorted[0].begin, int64(0)
	for _, j := range sorted {
		if j.begin > end {
			sum += j.begin - end
			idle = append(idle, struct{ begin, sum int64 }{j.begin, sum})
		}
		end = max(end, j.end)
	}
	return idle
}

// before returns the time for which the device idled before ns.
func (idle idleTimes) before(ns int64) int64 {
	i := sort.Search(len(idle), func(i int) bool { return idle[i].begin > ns })
	if i == 0 {
		return 0
	}
	return idle[i-1].sum
}
