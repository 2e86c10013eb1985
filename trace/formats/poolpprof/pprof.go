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
// Where a pool samples too rarely for what it holds, the profile says so in
// its comments (go tool pprof -comments), and what to set instead.
// Package trace/pprof makes such a profile of a recording.
package pprof

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
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
		holders, live := p.Holders(-1), p.Sample().Live
		comments = append(comments, fmt.Sprintf("%v pool: %v live, sites sampled every %v on average%s",
			p.Space(), pressure.Bytes(live), pressure.Bytes(p.SiteRate()), coarse(holders, live, p.SiteRate())))
		for _, h := range holders {
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

// A profile is too coarse where the estimate for all that is live is likely to be off by
// more than a tenth. The rate that is proposed makes that a thirtieth, so that a site with a
// tenth of all is off by a tenth.
const (
	tooCoarse = 0.1
	samples   = 1000
)

// coarse says so where a rate is too coarse for what is live; else it is empty.
func coarse(holders []pool.Holder, live, rate int64) string {
	off := deviation(holders, live, rate)
	if live == 0 || off <= tooCoarse {
		return ""
	}
	fine := int64(1) << max(0, bits.Len64(uint64(live/samples))-1)
	return fmt.Sprintf(". That is too coarse for what is held: the sum is likely to be off by %.0f %%, and each site by more. "+
		"Set pool.Config.Sites to %d (%v), or to pool.SitesByLimit for a pool with a limit", 100*off, fine, pressure.Bytes(fine))
}

// deviation is the standard deviation of the estimate for all that is live, as a share of it. A
// block of size bytes is in the sample with probability p = 1-exp(-size/rate) and then counts 1/p
// times (Horvitz and Thompson 1952), so each of them adds size² (1-p)/p to the variance. The sizes are the
// means of the sites. What no sample has been seen of has small blocks, which add size x rate.
func deviation(holders []pool.Holder, live, rate int64) float64 {
	if rate <= 1 || live == 0 {
		return 0
	}
	var variance float64
	unseen := float64(live)
	for _, h := range holders {
		if h.Blocks <= 0 || h.Bytes <= 0 {
			continue
		}
		size := float64(h.Bytes) / float64(h.Blocks)
		p := -math.Expm1(-size / float64(rate))
		variance += float64(h.Bytes) * size * (1 - p) / p
		unseen -= float64(h.Bytes)
	}
	variance += max(0, unseen) * float64(rate)
	return math.Sqrt(variance) / float64(live)
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
