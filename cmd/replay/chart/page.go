package chart

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/sim"
)

// Data is the input of the page's script. Times are in seconds, memory is in GiB.
type Data struct {
	Policies   []PolicyLook `json:"policies"`
	Recordings []Recording  `json:"recordings"`
}

// A PolicyLook is the style of a policy.
type PolicyLook struct {
	Name  string    `json:"name"`
	Light string    `json:"light"`
	Dark  string    `json:"dark"`
	Dash  []float64 `json:"dash,omitempty"`
	Width float64   `json:"width"`
}

// Looks returns the styles of the policies of a grid.
func Looks(g *experiment.Grid, palette Palette) []PolicyLook {
	var all []PolicyLook
	for _, name := range Names(g) {
		l := palette.of(name)
		all = append(all, PolicyLook{name, hex(l.Light), hex(l.Dark), l.Dash, l.Width})
	}
	return all
}

// A Recording is the part of the page for one recording.
type Recording struct {
	Name    string                 `json:"name"`
	Limit   float64                `json:"limit"`
	Top     float64                `json:"top"` // of the memory axes
	End     float64                `json:"end"` // of the time axes
	Shown   [2]int                 `json:"shown"`
	Runs    []runData              `json:"runs"`
	Reasons []string               `json:"reasons"` // decisions and why
	Charts  map[string][]LineChart `json:"charts"`
}

// runData is one run. T, Live and Reach are 32-bit floats, little-endian, in base64.
type runData struct {
	Policy  int     `json:"policy"`
	T       string  `json:"t"`
	Live    string  `json:"live"`
	Reach   string  `json:"reach"`
	Peak    float64 `json:"peak"`
	Mean    float64 `json:"mean"`
	Garbage float64 `json:"garbage"`
	Cycles  cycles  `json:"cycles"`
}

// cycles has a column for each fact about the cycles and the last answer of the policy before
// each.
type cycles struct {
	Start  []float64 `json:"start"`
	Took   []float64 `json:"took"`
	Held   []float64 `json:"held"`
	Freed  []float64 `json:"freed"`
	After  []float64 `json:"after"`
	Forced []int     `json:"forced"` // 1: by a refusal
	Live   []float64 `json:"live"`   // when the policy answered
	Asked  []float64 `json:"asked"`  // bytes of the allocation after it; negative: seconds of the wait after it
	Reason []int     `json:"reason"` // in Reasons
}

// Recording returns the data of the runs of a workload at [Builder.Cell].
func (b *Builder) Recording(workload int, runs []Run) Recording {
	at := b.Cell(workload)
	w := b.Grid.Workloads[workload]
	limit := b.Grid.Limits[at.Limit].Of(w)
	windows := mmuWindows(runs)
	d := Recording{Name: w.Name, Limit: gib(limit), Top: gib(limit), End: windows[len(windows)-1].Seconds(), Shown: b.shown(runs)}
	for _, r := range runs {
		d.Top = max(d.Top, gib(r.Result.PeakLive))
		d.Runs = append(d.Runs, b.columns(&d, &r))
	}
	return d
}

// shown returns the two runs of a new memory chart: that of the best policy, and that of never
// or else another one.
func (b *Builder) shown(runs []Run) [2]int {
	find := func(ok func(policy string) bool) int {
		return max(0, slices.IndexFunc(runs, func(r Run) bool { return ok(r.Result.Policy) }))
	}
	best := find(func(p string) bool { return b.Ranks.Best >= 0 && p == b.Grid.Contenders[b.Ranks.Best].String() })
	other := find(func(p string) bool { return p == "never" })
	if other == best {
		other = find(func(p string) bool { return p != runs[best].Result.Policy })
	}
	return [2]int{best, other}
}

func (b *Builder) columns(of *Recording, r *Run) runData {
	var t, live, reach []float32
	for _, x := range r.Levels {
		at := float32(x.At.Seconds())
		if n := len(t); n > 0 && t[n-1] == at { // one level for each moment
			t, live, reach = t[:n-1], live[:n-1], reach[:n-1]
		}
		t, live, reach = append(t, at), append(live, float32(gib(x.Live))), append(reach, float32(gib(x.Live-x.Garbage)))
	}
	return runData{
		Policy: slices.Index(Names(b.Grid), r.Result.Policy), T: packed(t), Live: packed(live), Reach: packed(reach),
		Peak: gib(r.Result.PeakLive), Mean: gib(int64(r.Result.MeanLive)), Garbage: gib(int64(r.Result.MeanGarbage)), Cycles: of.joined(r.Log),
	}
}

func packed(values []float32) string {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return base64.StdEncoding.EncodeToString(b)
}

// joined joins each cycle with the last answer of the policy before it.
func (r *Recording) joined(log *sim.Log) (d cycles) {
	d.Start = []float64{} // for the script, not null
	for _, c := range log.Cycles {
		forced := 0
		if c.Trigger == policy.TriggerRefusal {
			forced = 1
		}
		var last sim.Decided
		said := "nothing yet"
		if k := sort.Search(len(log.Decisions), func(i int) bool { return log.Decisions[i].Now > c.Start }); k > 0 {
			last = log.Decisions[k-1]
			said = fmt.Sprintf("%v: %s", last.Action, last.Reason)
		}
		asked := float64(last.Request)
		if last.At == policy.Sync {
			asked = -seconds(last.Wait)
		}
		d.Start, d.Took, d.Held = append(d.Start, seconds(c.Start)), append(d.Took, seconds(c.Duration)), append(d.Held, seconds(c.Exposed))
		d.Freed, d.After, d.Forced = append(d.Freed, gib(c.Freed)), append(d.After, gib(c.LiveAfter)), append(d.Forced, forced)
		d.Live, d.Asked, d.Reason = append(d.Live, gib(last.Sample.Live)), append(d.Asked, asked), append(d.Reason, r.reason(said))
	}
	return d
}

func (r *Recording) reason(text string) int {
	i := slices.Index(r.Reasons, text)
	if i < 0 {
		i = len(r.Reasons)
		r.Reasons = append(r.Reasons, text)
	}
	return i
}

func seconds(d time.Duration) float64 { return float64(d.Round(time.Microsecond)) / 1e9 }

func gib(bytes int64) float64 { return round(float64(bytes) / (1 << 30)) }

// round keeps six digits, which is enough for charts.
func round(v float64) float64 {
	if v == 0 {
		return 0
	}
	scale := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

// Spark draws the reachable bytes of a recording as a path, 100 wide and 20 high.
func Spark(runs []Run) string {
	r := runs[0]
	var top int64
	for _, l := range r.Levels {
		top = max(top, l.Live-l.Garbage)
	}
	const columns = 100
	var out strings.Builder
	out.WriteString("M0,20")
	i, last := 0, int64(0)
	for k := range columns {
		until := r.Result.Elapsed * time.Duration(k+1) / columns
		most := last
		for ; i < len(r.Levels) && r.Levels[i].At <= until; i++ {
			last = r.Levels[i].Live - r.Levels[i].Garbage
			most = max(most, last)
		}
		fmt.Fprintf(&out, "L%d,%.3gH%d", k, 20-19*float64(most)/float64(max(1, top)), k+1)
	}
	return out.String() + "V20Z"
}
