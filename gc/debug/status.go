package debug

import (
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/governor"
	"github.com/eagergc/eagergc/gc/policy"
)

// A status is the content of the page, as JSON. Durations are in nanoseconds, sizes in bytes.
type status struct {
	Health    health            `json:"health"`
	Token     string            `json:"token"`  // for a POST
	Now       time.Duration     `json:"now_ns"` // since the collector was made
	Policy    string            `json:"policy"`
	Running   bool              `json:"running"`
	Error     string            `json:"error,omitempty"`
	Spaces    []space           `json:"spaces"`
	Libraries []library         `json:"libraries"` // largest first
	Cycles    map[string]uint64 `json:"cycles"`    // by trigger
	Decisions map[string]uint64 `json:"decisions"` // by reason
	Freed     int64             `json:"freed_bytes"`
	Busy      time.Duration     `json:"busy_ns"`
	Exposed   time.Duration     `json:"exposed_pause_ns"`
	MaxPause  time.Duration     `json:"max_pause_ns"`
	Capped    uint64            `json:"capped_cycles"`    // the policy wanted them and a cap prevented them
	Pending   int               `json:"pending_releases"` // of dead objects
	OverLimit bool              `json:"over_limit"`       // more is reachable than the limit of Own
	Survivors []survivor        `json:"survivors"`        // largest first
	Tracked   int               `json:"tracked_objects"`
	Cost      time.Duration     `json:"expected_cycle_ns"`
	Last      []cycle           `json:"last_cycles"`    // newest first
	Decided   []decision        `json:"last_decisions"` // newest first
}

// A health is the snapshot's verdict, as JSON.
type health struct {
	Level   string `json:"level"` // good, watch or bad
	Verdict string `json:"verdict"`
	Text    string `json:"text"`
	Do      string `json:"do,omitempty"`
	See     string `json:"see,omitempty"` // a page that tells more
}

// A space is the state of one watched memory.
type space struct {
	Name     string `json:"name"`
	Live     int64  `json:"live_bytes"`
	Reserved int64  `json:"reserved_bytes"`
	Limit    int64  `json:"limit_bytes"`     // 0 = none known
	Worth    string `json:"worth,omitempty"` // what cycles bring back, a sentence
}

// A library is the sum of all counters of one name.
type library struct {
	Name    string `json:"name"`
	Live    int64  `json:"live_bytes"`
	Objects int64  `json:"objects"`
	Freed   int64  `json:"freed_bytes"` // given back after cycles
}

// A survivor is memory of one allocation site that many cycles have not freed.
type survivor struct {
	Site   string `json:"site"`
	Bytes  int64  `json:"bytes"` // estimated
	Cycles uint64 `json:"cycles"`
}

// A cycle is one finished cycle.
type cycle struct {
	Start     time.Duration `json:"start_ns"`
	Duration  time.Duration `json:"duration_ns"`
	Exposed   time.Duration `json:"exposed_ns"`
	Trigger   string        `json:"trigger"`
	Action    string        `json:"action"`
	Freed     int64         `json:"freed_bytes"`
	LiveAfter int64         `json:"live_after_bytes"`
}

// A decision is one answer of the policy; Repeats counts skips in a row.
type decision struct {
	Time     time.Duration `json:"time_ns"`
	At       string        `json:"at"`
	Space    string        `json:"space"`
	Live     int64         `json:"live_bytes"`
	Limit    int64         `json:"limit_bytes"`
	Request  int64         `json:"request_bytes"`
	Action   string        `json:"action"`
	Reason   string        `json:"reason"`
	Repeats  int           `json:"repeats"`
	Pressure float64       `json:"pressure"`
}

func (h *handler) status(now *gc.Snapshot) status {
	stats := &now.Stats
	s := status{
		Now: now.Now, Policy: now.Policy, Running: now.Running, Spaces: []space{}, Libraries: []library{},
		Cycles: make(map[string]uint64), Decisions: now.Reasons, Freed: stats.Freed, Busy: stats.Busy,
		Exposed: stats.Exposed, MaxPause: stats.MaxPause, Tracked: stats.Tracked, Cost: stats.Cost, Token: h.token,
		Capped: now.Reasons[governor.CappedReason], Pending: stats.Pending, OverLimit: stats.OverLimit,
		Survivors: []survivor{}, Last: []cycle{}, Decided: []decision{},
	}
	for _, n := range now.Libraries {
		s.Libraries = append(s.Libraries, library(n))
	}
	for _, v := range now.Survivors {
		s.Survivors = append(s.Survivors, survivor{v.Site, v.Bytes, v.Cycles})
	}
	if now.Err != nil {
		s.Error = now.Err.Error()
	}
	for t, n := range stats.Cycles {
		s.Cycles[policy.Trigger(t).String()] = n
	}
	for _, m := range now.Sources {
		s.Spaces = append(s.Spaces, space{m.Space.String(), m.Live, m.Reserved, m.Limit, m.Worth})
	}
	for i := len(now.Cycles) - 1; i >= 0; i-- {
		y := now.Cycles[i]
		s.Last = append(s.Last, cycle{y.Start, y.Duration, y.Exposed, y.Trigger.String(), y.Action.String(), y.Freed, y.LiveAfter})
	}
	for i := len(now.Decisions) - 1; i >= 0; i-- {
		d := now.Decisions[i]
		s.Decided = append(s.Decided, decision{
			d.Now, d.At.String(), d.Sample.Space.String(), d.Sample.Live, d.Sample.Limit, d.Request,
			d.Action.String(), d.Reason, d.Repeats, d.Sample.Pressure(),
		})
	}
	f := Verdict(now)
	s.Health = health{f.Level, f.Verdict, f.Reason, f.Next, f.See}
	return s
}
