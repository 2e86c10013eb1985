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
}

// A launch is a call of the runtime or the driver that may have launched jobs.
type launch struct{ correlation, ns int64 }

// ahead adds to the rows how far a device was ahead of its program: how long the
// program could have paused without the next wait being over later.
//
// A pause of length p delays all later launches by p. A job that was queued for a
// while before it began is delayed by p less that while, and so is the end of the wait,
// less the time after the job in which the device idled. The wait itself ends no later
// as long as p is no more than the wait. So a pause is absorbed up to the least of these
// sums over the jobs that are launched after it, and up to the wait.
func (p *profile) ahead() {
	jobs := p.match()
	if len(jobs) == 0 {
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
	quickest := jobs[0].begin - jobs[0].launch // of all jobs: what a launch takes
	for _, j := range jobs {
		quickest = min(quickest, j.begin-j.launch)
	}
	label := p.labels.Label(trace.AheadLabel)
	mark := func(ns, ahead int64) {
		p.rows = recording.Append(p.budget, p.rows, row{ns: ns, dur: ahead, class: classMark, label: label, index: int32(p.events)})
	}
	mark(jobs[0].launch, 0) // so that it is known that this was recorded
	before := int64(0)      // jobs launched before the last wait was over
	for _, s := range syncs {
		all := jobs[before:]
		all = all[:sort.Search(len(all), func(i int) bool { return all[i].launch >= s.ns })]
		before += int64(len(all))
		absorbed(all, s, idle, max(0, quickest), mark)
	}
}

// absorbed marks, for one wait, what pauses before it it absorbs: after each of the
// jobs that were launched for it, in the order of their launch.
func absorbed(jobs []job, wait row, idle idleTimes, quickest int64, mark func(ns, ahead int64)) {
	until := wait.ns + wait.dur
	done := int64(0) // when the device has done what the wait is for
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

// What is ahead is told in steps.
const (
	leastStep   = int64(10 * gotime.Microsecond)
	stepsOfWait = 20
)

// match returns the jobs whose launch is known, in the order of their launches.
func (p *profile) match() (jobs []job) {
	launches := p.launches
	slices.SortFunc(launches, func(a, b launch) int { return cmp.Compare(a.correlation, b.correlation) })
	for _, j := range p.jobs {
		i, ok := slices.BinarySearchFunc(launches, j.correlation, func(l launch, c int64) int { return cmp.Compare(l.correlation, c) })
		if ok && launches[i].ns <= j.begin {
			j.launch = launches[i].ns
			jobs = append(jobs, j)
		}
	}
	p.launches = nil
	slices.SortFunc(jobs, func(a, b job) int { return cmp.Or(cmp.Compare(a.launch, b.launch), cmp.Compare(a.begin, b.begin)) })
	return jobs
}

// idleTimes say how long the device idled before each moment at which it began to
// work again.
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

// before is how long the device idled before a moment at which it worked.
func (idle idleTimes) before(ns int64) int64 {
	i := sort.Search(len(idle), func(i int) bool { return idle[i].begin > ns })
	if i == 0 {
		return 0
	}
	return idle[i-1].sum
}
