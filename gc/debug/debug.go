// Package debug serves a page about a running collector, as net/http/pprof does about a running
// program:
//
//	mux.Handle("/debug/eagergc/", debug.Handler(collector, pool))
//
// A pattern that ends with a slash also matches the path without the slash.
//
// The first line of the page is the verdict on the process, with the next step. Charts show live
// memory and cycles of the last minutes ([gc.Snapshot]). A table shows how long callers were held.
// Folded sections have the pools' reports, the last cycles, the last decisions with their reasons,
// and the variables of the environment. The page updates itself. With ?format=json the answer is
// JSON.
//
// A GET changes nothing and costs little. A button sends a POST, which runs cycles and says why the
// process holds its memory ([Diagnose]). One POST runs at a time. It needs the page's token, which is
// also in the JSON:
//
//	curl -d do=diagnose -d window=10s -d token=$TOKEN http://localhost:6060/debug/eagergc/
//
// [Handler] answers only requests from this machine that are addressed to a loopback name: see
// [Local]. A program with its own authentication uses [Unguarded] instead.
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
	"os"
	"strings"
	"sync"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pressure"
)

// A Reporter writes a report about itself as text, as a *pool.Pool does.
type Reporter interface {
	Report(io.Writer) error
}

// Handler returns the handler of the page about c, with the given reports. It is safe for
// concurrent use. A GET takes the collector's lock for microseconds and calls each Report once.
// With a nil c, as [auto.Collector] returns with EAGERGC=off, it answers that no collector runs.
//
// [auto.Collector]: https://pkg.go.dev/github.com/eagergc/eagergc/gc/auto#Collector
func Handler(c *gc.Collector, reports ...Reporter) http.Handler {
	return Local(Unguarded(c, reports...))
}

// Unguarded is [Handler] for clients on any machine and under any name. The page shows sizes,
// limits and reports, and runs cycles. The program must check that a client may do that.
func Unguarded(c *gc.Collector, reports ...Reporter) http.Handler {
	return &handler{c: c, reports: reports, token: rand.Text()}
}

type handler struct {
	c       *gc.Collector
	reports []Reporter
	token   string // a POST must have it, so that only readers of the page can send one
	costly  sync.Mutex
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	noStore(w)
	if h.c == nil {
		http.Error(w, "eagergc: no collector runs here: it is turned off, or this system is not Linux", http.StatusServiceUnavailable)
		return
	}
	switch r.Method {
	case http.MethodHead: // costs nothing
	case http.MethodGet:
		if r.URL.Query().Get("format") == "json" {
			w.Header().Set("Content-Type", "application/json")
			now := h.c.Snapshot()
			_ = json.NewEncoder(w).Encode(h.status(&now)) // an error means that the client is gone
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

// post runs a diagnosis, one at a time. It needs the page's token.
func (h *handler) post(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4096)
	if fromElsewhere(r) || subtle.ConstantTimeCompare([]byte(r.PostFormValue("token")), []byte(h.token)) != 1 {
		refuse(w, "needs the page's token: reload the page, or take the token from ?format=json")
		return
	}
	if !h.costly.TryLock() {
		http.Error(w, "eagergc: another request is running", http.StatusTooManyRequests)
		return
	}
	defer h.costly.Unlock()
	if do := r.PostFormValue("do"); do != "diagnose" {
		http.Error(w, fmt.Sprintf("eagergc: do=%q: want diagnose", do), http.StatusBadRequest)
		return
	}
	h.diagnose(w, r)
}

const longestWindow = time.Minute // of a diagnosis

func (h *handler) diagnose(w http.ResponseWriter, r *http.Request) {
	text := cmp.Or(r.PostFormValue("window"), "2s")
	window, err := time.ParseDuration(text)
	if err != nil || window < 0 || window > longestWindow {
		http.Error(w, fmt.Sprintf("eagergc: window=%s: want a time from 0s to %v, such as 10s", text, longestWindow), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, Diagnose(r.Context(), h.c, window).String()) // an error means that the client is gone
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

// count returns a number with its noun: 1 object, 2 objects.
func count(n any, noun string) string {
	text := fmt.Sprint(n)
	if text != "1" {
		noun += "s"
	}
	return text + " " + noun
}

// page writes the whole page to memory first, so that a slow client holds no lock.
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
	_, _ = w.Write(out) // an error means that the client is gone
}

// render returns the page about a snapshot.
func (h *handler) render(now *gc.Snapshot, nonce string) ([]byte, error) {
	data := struct {
		status
		Nonce     string
		Reports   []string
		Charts    []chart
		Pauses    pauses
		Variables []variable
	}{status: h.status(now), Nonce: nonce, Charts: chartsOf(now), Pauses: pausesOf(&now.Stats), Variables: variables(os.Environ())}
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

// A variable is one of the environment, with its values in this process.
type variable struct {
	pressure.Variable
	Set []string // as NAME=value; several for the limits of spaces
}

// variables returns the table of package pressure, with what environ sets.
func variables(environ []string) (all []variable) {
	for _, v := range pressure.Variables() {
		x := variable{Variable: v}
		before, after, spaces := strings.Cut(v.Name, "SPACE")
		for _, setting := range environ {
			name, value, _ := strings.Cut(setting, "=")
			space := spaces && strings.HasPrefix(name, before) && strings.HasSuffix(name, after) && len(name) > len(before+after)
			if value != "" && (name == v.Name || space) {
				x.Set = append(x.Set, setting)
			}
		}
		all = append(all, x)
	}
	return all
}
