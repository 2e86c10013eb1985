// Package debug serves a page about a running collector, as net/http/pprof does
// about a running program:
//
//	mux.Handle("/debug/eagergc/", debug.Handler(collector, pool))
//
// With the slash at its end the pattern takes the path without it, too.
//
// The page says in a line whether all is well, and what to do if not. It shows the last minutes as they
// were: the extremes of live memory, cycles and their triggers ([gc.Snapshot]); how long
// callers were held; and, folded, the pools' reports, the last cycles, and the last decisions with
// their reasons. It goes on while it is open. With ?format=json it is data.
//
// A GET changes nothing and costs little. Two buttons are POSTs, one of them at a time: "diagnose" runs cycles and says why the process holds
// its memory ([gc.Collector.Diagnose]), and, with a recorder of package gc/debug/flight among
// the reports, "recording" downloads the last minutes. They want the page's token, which is in the data, too:
//
//	curl -d do=diagnose -d window=10s -d token=$TOKEN http://localhost:6060/debug/eagergc/
//
// It answers only requests that come from this machine and are addressed to it by a loopback name ([Local]).
// A program that puts its own authentication in front uses [Unguarded] instead.
package debug

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/subtle"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pressure"
)

// A Reporter writes a report about itself as text. A *pool.Pool is one. One that also
// has a method WriteRecording(io.Writer) error, as *flight.Recorder does, gives the page its download.
type Reporter interface {
	Report(io.Writer) error
}

type recording interface {
	WriteRecording(io.Writer) error
}

// Handler returns the handler of the page about c, with the reports given. It
// is safe for concurrent use. A GET takes the collector's lock for
// microseconds, and the reporters' for as long as their Report does.
func Handler(c *gc.Collector, reports ...Reporter) http.Handler {
	return Local(Unguarded(c, reports...))
}

// Unguarded is [Handler] for any client, from any machine and by any name. The
// page tells sizes, limits and what the reports say; whether a client may know
// them, and run cycles, is for the program to check before it passes a request on.
func Unguarded(c *gc.Collector, reports ...Reporter) http.Handler {
	h := &handler{c: c, reports: reports, token: rand.Text()}
	for _, r := range reports {
		if last, ok := r.(recording); ok {
			h.last = last
		}
	}
	return h
}

type handler struct {
	c       *gc.Collector
	reports []Reporter
	last    recording // nil = none
	token   string    // that a POST has to show: only who can read the page has it
	costly  sync.Mutex
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	noStore(w)
	switch r.Method {
	case http.MethodHead: // costs nothing
	case http.MethodGet:
		if r.URL.Query().Get("format") == "json" {
			w.Header().Set("Content-Type", "application/json")
			now := h.c.Snapshot()
			_ = json.NewEncoder(w).Encode(h.status(&now)) // the client is gone: nobody to tell
			return
		}
		h.page(w)
	case http.MethodPost:
		h.post(w, r)
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		http.Error(w, "eagergc: GET reads, POST runs a diagnosis", http.StatusMethodNotAllowed)
	}
}

// post does what costs something, for who has read the page, one at a time.
func (h *handler) post(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4096)
	if fromElsewhere(r) || subtle.ConstantTimeCompare([]byte(r.PostFormValue("token")), []byte(h.token)) != 1 {
		refuse(w, "want the page's token: load the page again, or take it from ?format=json")
		return
	}
	if !h.costly.TryLock() {
		http.Error(w, "eagergc: another one is under way", http.StatusTooManyRequests)
		return
	}
	defer h.costly.Unlock()
	switch do := r.PostFormValue("do"); {
	case do == "diagnose":
		h.diagnose(w, r)
	case do == "recording" && h.last != nil:
		h.recording(w)
	default:
		http.Error(w, fmt.Sprintf("eagergc: do=%q: want diagnose, or recording where there is one", do), http.StatusBadRequest)
	}
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

// The windows of a diagnosis.
const (
	usualWindow   = "2s"
	longestWindow = time.Minute
)

func (h *handler) diagnose(w http.ResponseWriter, r *http.Request) {
	text := cmp.Or(r.PostFormValue("window"), usualWindow)
	window, err := time.ParseDuration(text)
	if err != nil || window < 0 || window > longestWindow {
		http.Error(w, fmt.Sprintf("eagergc: window=%s: want a time from 0s to %v, such as 10s", text, longestWindow), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, h.c.Diagnose(r.Context(), window).String()) // the client is gone: nobody to tell
}

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"bytes": func(n int64) string { return pressure.Bytes(n).String() },
	"ms":    shortly,
	"share": func(f float64) float64 { return 100 * f },
	"count": count,
	"json":  func(v any) (string, error) { text, err := json.Marshal(v); return string(text), err },
}).Parse(pageText))

// count is a number and its noun: 1 object, 2 objects.
func count(n any, noun string) string {
	text := fmt.Sprint(n)
	if text != "1" {
		noun += "s"
	}
	return text + " " + noun
}

// page writes the whole page to memory first: a client that reads slowly holds
// nothing.
func (h *handler) page(w http.ResponseWriter) {
	nonce, now := rand.Text(), h.c.Snapshot()
	out, err := h.render(&now, nonce)
	if err != nil {
		http.Error(w, "eagergc: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy",
		"default-src 'none'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; style-src 'nonce-"+nonce+"'; script-src 'nonce-"+nonce+"'")
	_, _ = w.Write(out) // the client is gone: nobody to tell
}

// render is the page about a snapshot.
func (h *handler) render(now *gc.Snapshot, nonce string) ([]byte, error) {
	data := struct {
		status
		Nonce     string
		Reports   []string
		Recording bool
		Charts    []chart
		Pauses    pauses
	}{status: h.status(now), Nonce: nonce, Recording: h.last != nil, Charts: chartsOf(now), Pauses: pausesOf(&now.Stats)}
	for _, r := range h.reports {
		var text strings.Builder
		if err := r.Report(&text); err != nil {
			text.WriteString(err.Error())
		}
		data.Reports = append(data.Reports, text.String())
	}
	var out bytes.Buffer
	err := page.Execute(&out, data)
	return out.Bytes(), err
}
