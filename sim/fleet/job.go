package fleet

import (
	"math"
	"math/bits"

	"github.com/eagergc/eagergc/sim"
)

// A Job is what is known of one recording: its features, and an outcome for each
// cell that was replayed. It does not say what the recording is called, so that it can be
// kept by content.
type Job struct {
	Hash     string   `json:"recording"`
	Bytes    int64    `json:"bytes"` // of the file
	Features Features `json:"features"`
	Outcomes Outcomes `json:"outcomes"`
}

// Outcomes are by the key of their cell: see [Mapper.Key].
type Outcomes map[string]Outcome

// An Outcome is what came of one replay, in whole bytes and nanoseconds. It is a
// [sim.Result] without what its cell says.
type Outcome struct {
	None        bool  `json:"none,omitempty"` // of an optimum: there is no schedule
	Limit       int64 `json:"limit"`
	Collections int64 `json:"collections"`
	Refusals    int64 `json:"refusals"`
	Failed      int64 `json:"failed"`
	Exposed     int64 `json:"exposed"`
	Longest     int64 `json:"longest"`
	Busy        int64 `json:"busy"`
	Objective   int64 `json:"objective"`
	Elapsed     int64 `json:"elapsed"`
	PeakLive    int64 `json:"peak"`
	MeanLive    int64 `json:"live"`
	MeanGarbage int64 `json:"garbage"`
}

func outcomeOf(r *sim.Result, err error) Outcome {
	if err != nil {
		return Outcome{None: true, Limit: r.LimitBytes}
	}
	return Outcome{
		Limit: r.LimitBytes, Collections: int64(r.Collections), Refusals: int64(r.RefusalCollections), Failed: int64(r.FailedAllocs),
		Exposed: int64(r.ExposedPause), Longest: int64(r.MaxPause), Busy: int64(r.GCBusy), Objective: int64(r.Objective()), Elapsed: int64(r.Elapsed),
		PeakLive: r.PeakLive, MeanLive: int64(math.Round(r.MeanLive)), MeanGarbage: int64(math.Round(r.MeanGarbage)),
	}
}

// Lost is the time lost, in millionths of the recorded time.
func (o *Outcome) Lost(span int64) int64 { return ratio(o.Objective, 1_000_000, span) }

// logLost is the logarithm of 1 + the time lost, in units of 1e-9: the sum over jobs
// gives the geometric mean that compare prints.
func (o *Outcome) logLost(span int64) int64 {
	return int64(math.Round(1e9 * math.Log1p(float64(o.Objective)/float64(max(1, span)))))
}

// ratio is a x b / c in whole numbers, at most the largest.
func ratio(a, b, c int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if high >= uint64(max(1, c)) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(high, low, uint64(max(1, c)))
	return int64(min(q, math.MaxInt64))
}
