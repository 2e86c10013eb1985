// Package debug serves a page about a running collector, as net/http/pprof does
// about a running program:
//
//	mux.Handle("/debug/eagergc/", debug.Handler(collector, pool))
//
// With the slash at its end the pattern takes the path without it, too.
//
// The page says in a line whether all is well. It shows the last minutes as they
// were: the extremes of live memory, cycles and their triggers ([gc.Collector.Timeline]); how long
// callers were held; and, folded, the pools' reports, the last cycles, and the last decisions with
// their reasons. It goes on while it is open. With a recorder of package gc/debug/flight among
// the reports it has buttons that download the last minutes as a recording, and that
// replay them under other policies. With ?format=json it is data; with ?diagnose, or ?diagnose=10s, it runs cycles
// and says why the process holds its memory ([gc.Collector.Diagnose]). Else it changes nothing. It answers only
// requests that come from this machine and are addressed to it by a loopback
// name, which keeps web pages elsewhere from reading it. A program that puts
// its own authentication in front uses [Unguarded] instead.
package debug

import (
	"bytes"
	"context"
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

// A Recording is a Reporter that keeps the last minutes of the program: a
// *flight.Recorder is one.
type Recording interface {
	Reporter
	WriteRecording(io.Writer) error
	// WriteWhatIf writes what other policies would have done.
	WriteWhatIf(context.Context, *gc.Collector, io.Writer) error
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
	h := &handler{c: c, reports: reports}
	for _, r := range reports {
		if last, ok := r.(Recording); ok {
			h.last = last
		}
	}
	return http.HandlerFunc(h.serve)
}

type handler struct {
	c       *gc.Collector
	reports []Reporter
	last    Recording // nil = none
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
	if h.last != nil && r.Form.Has("recording") {
		h.recording(w)
		return
	}
	if h.last != nil && r.Form.Has("whatif") {
		h.whatIf(w, r)
		return
	}
	h.page(w)
}

// recording sends the last minutes as a file.
func (h *handler) recording(w http.ResponseWriter) {
	var out bytes.Buffer // a client that reads slowly holds nothing
	if err := h.last.WriteRecording(&out); err != nil {
		http.Error(w, "eagergc: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/vnd.apache.arrow.stream")
	w.Header().Set("Content-Disposition", `attachment; filename="last.arrows"`)
	_, _ = w.Write(out.Bytes()) // the client is gone: nobody to tell
}

// whatIf sends what other policies would have done.
func (h *handler) whatIf(w http.ResponseWriter, r *http.Request) {
	var out bytes.Buffer
	if err := h.last.WriteWhatIf(r.Context(), h.c, &out); err != nil {
		http.Error(w, "eagergc: "+err.Error(), http.StatusConflict)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write(out.Bytes()) // the client is gone: nobody to tell
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

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"bytes":  func(n int64) string { return pressure.Bytes(n).String() },
	"ms":     shortly,
	"share":  func(f float64) float64 { return 100 * f },
	"add":    func(a, b int) int { return a + b },
	"plus":   func(at float64, more ...int) string { return fmt.Sprintf("%.1f", at+sum(more)) },
	"place":  place,
	"middle": func(b bar) string { return place(b.At + b.Width/2) },
	"right":  func(b bar) string { return place(b.At + b.Width) },
	"symbol": func(trigger string) string { return symbols[trigger] },
}).Parse(pageText))

// page writes the whole page to memory first: a client that reads slowly holds
// nothing.
func (h *handler) page(w http.ResponseWriter) {
	nonce := rand.Text()
	data := struct {
		Status
		Nonce     string
		Reports   []string
		Recording bool
		Kept      string // what the recording says of itself
		Pictures  []picture
		Pauses    *pauses
	}{Status: h.status(), Nonce: nonce, Recording: h.last != nil, Pauses: pausesOf(h.c.Stats())}
	line := h.c.Timeline()
	for i := range line.Sources {
		data.Pictures = append(data.Pictures, draw(&line, i))
	}
	for _, r := range h.reports {
		var text strings.Builder
		if err := r.Report(&text); err != nil {
			text.WriteString(err.Error())
		}
		if _, ok := r.(Recording); ok {
			data.Kept = text.String()
			continue
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
