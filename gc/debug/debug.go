// Package debug serves a page about a running collector, as net/http/pprof does
// about a running program:
//
//	mux.Handle("/debug/eagergc/", debug.Handler(collector, pool))
//
// With the slash at its end the pattern takes the path without it, too.
//
// The page shows the pools' reports, the last cycles, the last decisions with
// their reasons, and a chart of live, reserved and limit that goes on while it
// is open. With ?format=json it is data; with ?diagnose, or ?diagnose=10s, it runs cycles
// and says why the process holds its memory ([gc.Collector.Diagnose]). Else it changes nothing. It answers only
// requests that come from this machine and are addressed to it by a loopback
// name, which keeps web pages elsewhere from reading it. A program that puts
// its own authentication in front uses [Unguarded] instead.
package debug

import (
	"bytes"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/local"
	"github.com/eagergc/eagergc/pressure"
)

// A Reporter writes a report about itself as text. A *pool.Pool is one.
type Reporter interface {
	Report(io.Writer) error
}

// Handler returns the handler of the page about c, with the reports given. It
// is safe for concurrent use. A request takes the collector's lock for
// microseconds, and the reporters' for as long as their Report does.
func Handler(c *gc.Collector, reports ...Reporter) http.Handler {
	return local.Only(newHandler(c, reports))
}

// Unguarded is [Handler] for any client, from any machine and by any name. The
// page tells sizes, limits and what the reports say; whether a client may know
// them is for the program to check before it passes a request on.
func Unguarded(c *gc.Collector, reports ...Reporter) http.Handler {
	return local.ReadOnly(newHandler(c, reports))
}

func newHandler(c *gc.Collector, reports []Reporter) http.Handler {
	h := &handler{c, reports}
	return http.HandlerFunc(h.serve)
}

type handler struct {
	c       *gc.Collector
	reports []Reporter
}

func (h *handler) serve(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("format") == "json" {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(h.status()) // the client is gone: nobody to tell
		return
	}
	if r.Form.Has("diagnose") {
		h.diagnose(w, r.Form.Get("diagnose"))
		return
	}
	h.page(w)
}

// The window of a diagnosis.
const (
	usualWindow   = 2 * time.Second
	longestWindow = time.Minute
)

func (h *handler) diagnose(w http.ResponseWriter, window string) {
	d := usualWindow
	if window != "" {
		var err error
		if d, err = time.ParseDuration(window); err != nil || d < 0 || d > longestWindow {
			http.Error(w, fmt.Sprintf("eagergc: diagnose=%s: want a time from 0s to %v, such as 10s", window, longestWindow), http.StatusBadRequest)
			return
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, h.c.Diagnose(d).String()) // the client is gone: nobody to tell
}

// A Status is what the page shows, as JSON. Durations are in nanoseconds, sizes
// in bytes.
type Status struct {
	Now       time.Duration     `json:"now_ns"` // since the collector was made
	Policy    string            `json:"policy"`
	Running   bool              `json:"running"`
	Error     string            `json:"error,omitempty"`
	Spaces    []Space           `json:"spaces"`
	Cycles    map[string]uint64 `json:"cycles"`    // by trigger
	Decisions map[string]uint64 `json:"decisions"` // by reason
	Freed     int64             `json:"freed_bytes"`
	Busy      time.Duration     `json:"busy_ns"`
	Exposed   time.Duration     `json:"exposed_pause_ns"`
	MaxPause  time.Duration     `json:"max_pause_ns"`
	Capped    uint64            `json:"capped_cycles"`    // that the policy wanted and a cap did not allow
	Pending   int               `json:"pending_releases"` // of dead objects
	OverLimit bool              `json:"over_limit"`       // more than the limit of Own is reachable
	Survivors []Survivor        `json:"survivors"`        // what many cycles have not freed, largest first
	Tracked   int               `json:"tracked_objects"`
	Cost      time.Duration     `json:"expected_cycle_ns"`
	Last      []Cycle           `json:"last_cycles"`    // newest first
	Decided   []Decision        `json:"last_decisions"` // newest first
}

// A Space is the state of one watched memory.
type Space struct {
	Name     string `json:"name"`
	Live     int64  `json:"live_bytes"`
	Reserved int64  `json:"reserved_bytes"`
	Limit    int64  `json:"limit_bytes"` // 0 = none known
}

// A Survivor is memory of one allocation site that many cycles have not freed.
type Survivor struct {
	Site   string `json:"site"`
	Bytes  int64  `json:"bytes"` // estimated
	Cycles uint64 `json:"cycles"`
}

// A Cycle is one finished cycle.
type Cycle struct {
	Start     time.Duration `json:"start_ns"`
	Duration  time.Duration `json:"duration_ns"`
	Exposed   time.Duration `json:"exposed_ns"`
	Trigger   string        `json:"trigger"`
	Action    string        `json:"action"`
	Freed     int64         `json:"freed_bytes"`
	LiveAfter int64         `json:"live_after_bytes"`
}

// A Decision is one answer of the policy; Repeats counts skips in a row.
type Decision struct {
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

func (h *handler) status() Status {
	c := h.c
	stats, recent := c.Stats(), c.Recent()
	s := Status{
		Now: c.Now(), Policy: c.Policy(), Running: c.Running(), Spaces: []Space{},
		Cycles: make(map[string]uint64), Decisions: c.Reasons(), Freed: stats.Freed, Busy: stats.Busy,
		Exposed: stats.Exposed, MaxPause: stats.MaxPause, Tracked: stats.Tracked, Cost: stats.Cost,
		Capped: stats.Capped, Pending: stats.Pending, OverLimit: stats.OverLimit,
		Survivors: []Survivor{}, Last: []Cycle{}, Decided: []Decision{},
	}
	for _, v := range c.Survivors() {
		s.Survivors = append(s.Survivors, Survivor{v.Site, v.Bytes, v.Cycles})
	}
	if err := c.Err(); err != nil {
		s.Error = err.Error()
	}
	for t, n := range stats.Cycles {
		s.Cycles[gc.Trigger(t).String()] = n
	}
	for _, m := range c.Samples() {
		s.Spaces = append(s.Spaces, Space{m.Space.String(), m.Live, m.Reserved, m.Limit})
	}
	for i := len(recent.Cycles) - 1; i >= 0; i-- {
		y := recent.Cycles[i]
		s.Last = append(s.Last, Cycle{y.Start, y.Duration, y.Exposed, y.Trigger.String(), y.Action.String(), y.Freed, y.LiveAfter})
	}
	for i := len(recent.Decisions) - 1; i >= 0; i-- {
		d := recent.Decisions[i]
		s.Decided = append(s.Decided, Decision{
			d.Now, d.At.String(), d.Sample.Space.String(), d.Sample.Live, d.Sample.Limit, d.Request,
			d.Action.String(), d.Reason, d.Repeats, d.Sample.Pressure(),
		})
	}
	return s
}

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"bytes": func(n int64) string { return pressure.Bytes(n).String() },
	"ms":    func(d time.Duration) string { return d.Round(time.Microsecond).String() },
	"share": func(f float64) float64 { return 100 * f },
}).Parse(pageText))

// page writes the whole page to memory first: a client that reads slowly holds
// nothing.
func (h *handler) page(w http.ResponseWriter) {
	nonce := rand.Text()
	data := struct {
		Status
		Nonce   string
		Reports []string
	}{Status: h.status(), Nonce: nonce}
	for _, r := range h.reports {
		var text strings.Builder
		if err := r.Report(&text); err != nil {
			text.WriteString(err.Error())
		}
		data.Reports = append(data.Reports, text.String())
	}
	var out bytes.Buffer
	if err := page.Execute(&out, data); err != nil {
		http.Error(w, "eagergc: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy",
		"default-src 'none'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; style-src 'nonce-"+nonce+"'; script-src 'nonce-"+nonce+"'")
	_, _ = w.Write(out.Bytes()) // the client is gone: nobody to tell
}
