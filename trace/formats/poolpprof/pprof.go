// Package pprof answers "who holds the memory" in a running program: it makes
// profiles for go tool pprof of what pools hold, by allocation site.
//
//	p, err := pool.New(pool.Config{Sites: pool.SitesByLimit})
//	mux.Handle("/debug/eagergc/memory", pprof.Handler(p))
//
//	$ go tool pprof -top http://localhost:6060/debug/eagergc/memory
//
// The profile has bytes and blocks, live and allocated so far, as Go's heap
// profiles do. It is made of what the pools sample anyway. (A profile of
// runtime/pprof.NewProfile would count blocks only, and keep a map entry for each.)
// Package trace/pprof makes such a profile of a recording.
package pprof

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/eagergc/eagergc/gc/debug"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace/formats/pprof"
)

// ErrNoSites reports that no pool samples sites: see [pool.Config].
var ErrNoSites = errors.New("pprof: no pool samples sites: see pool.Config.Sites")

// Write writes the profile of what the pools hold now, packed with gzip. Samples
// are labelled with their space, so that -tagfocus=device0 picks one; comments
// say what each pool holds and how it samples. It fails with [ErrNoSites], or
// with w's error. It holds up no pool.
func Write(w io.Writer, pools ...*pool.Pool) error {
	var (
		sites    []pprof.Site
		rate     int64
		comments []string
	)
	for _, p := range pools {
		if p.SiteRate() == 0 {
			continue
		}
		rate = max(rate, p.SiteRate())
		comments = append(comments, fmt.Sprintf("%v pool: %v live, sites sampled every %v on average",
			p.Space(), pressure.Bytes(p.Sample().Live), pressure.Bytes(p.SiteRate())))
		for _, h := range p.Holders(-1) {
			sites = append(sites, pprof.Site{
				Stack: h.Stack, Space: p.Space(),
				AllocObjects: h.AllocBlocks, AllocBytes: h.AllocBytes, InuseObjects: h.Blocks, InuseBytes: h.Bytes,
			})
		}
	}
	if rate == 0 {
		return ErrNoSites
	}
	return pprof.WriteSites(w, sites, rate, comments...)
}

// Handler serves what [Write] writes. Like the page of package gc/debug it answers
// only requests from this machine, as it tells what the program is made of. It is
// safe for concurrent use.
func Handler(pools ...*pool.Pool) http.Handler {
	return debug.Local(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "pprof: read-only", http.StatusMethodNotAllowed)
			return
		}
		var out bytes.Buffer // a client that reads slowly holds nothing
		if err := Write(&out, pools...); err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Disposition", `attachment; filename="memory.pb.gz"`)
		_, _ = w.Write(out.Bytes()) // the client is gone: nobody to tell
	}))
}
