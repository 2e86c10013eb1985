package auto

import (
	"log/slog"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
)

// While tasks wait for memory, a byte costs more: the price goes up four times, and
// four times again, with the share of the last 10 s in which some task has waited, or
// with how full a container is that is shared. Each step down needs a share well
// below that of the step up.
var urgencies = []struct {
	stalls, full float64
	policy       string
}{
	{0, 0, gc.HostPolicy},
	{0.02, 0.75, "host:price=8e-8,overhead=2%"},
	{0.2, 0.9, "host:price=3.2e-7,overhead=4%"},
}

// price chooses the policy for what is seen: stalls, and how full a shared container is.
func (w *watcher) price(stalls, full float64) {
	now := w.urgency
	for now+1 < len(urgencies) && (stalls >= urgencies[now+1].stalls || full >= urgencies[now+1].full) {
		now++
	}
	for now > 0 && stalls < urgencies[now].stalls/4 && full < urgencies[now].full-0.1 {
		now--
	}
	if now != w.urgency && w.collector.Policy() == policy.MustParse(urgencies[w.urgency].policy).New().String() {
		w.urgency = now
		w.collector.SetPolicy(policy.MustParse(urgencies[now].policy).New())
		w.options.log().Debug("eagergc: price of memory", slog.Float64("stalls", stalls), slog.String("policy", w.collector.Policy()))
	}
}
