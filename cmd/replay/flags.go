package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
)

// A limit is a number of bytes, or a factor of the peak reachable bytes of the
// workload it is applied to.
type limit struct {
	factor float64 // 0 = bytes
	bytes  int64
}

// parseLimit reads 1.5x or a size such as 8GiB.
func parseLimit(text string) (limit, error) {
	if digits, ok := strings.CutSuffix(text, "x"); ok {
		f, err := strconv.ParseFloat(digits, 64)
		if err != nil || !(f > 0 && f <= 1e6) {
			return limit{}, fmt.Errorf("limit %q: want a factor of the peak reachable bytes above 0x, such as 1.5x", text)
		}
		return limit{factor: f}, nil
	}
	n, err := parseBytes(text)
	if err != nil || n <= 0 {
		return limit{}, fmt.Errorf("limit %q: want a size such as 8GiB or a factor of the peak reachable bytes such as 1.5x", text)
	}
	return limit{bytes: n}, nil
}

// of returns the limit in bytes for w.
func (l limit) of(w *sim.Workload) int64 {
	if l.factor == 0 {
		return l.bytes
	}
	return max(1, int64(math.Floor(l.factor*float64(w.PeakReachable))))
}

func (l limit) String() string {
	if l.factor == 0 {
		return pressure.Limit{Bytes: l.bytes}.String()
	}
	return strconv.FormatFloat(l.factor, 'g', -1, 64) + "x"
}

// parseEach reads a list separated by commas.
func parseEach[T any](text string, parse func(string) (T, error)) ([]T, error) {
	var all []T
	for _, item := range strings.Split(text, ",") {
		v, err := parse(strings.TrimSpace(item))
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

func parseCycle(text string) (sim.Cost, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return sim.Cost{}, fmt.Errorf("cycle %q: want the duration of a collection, such as 10ms", text)
	}
	return sim.Fixed(d), nil
}

// readCost reads a cost model, the JSON form of [sim.Cost].
func readCost(path string) (sim.Cost, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return sim.Cost{}, err
	}
	var c sim.Cost
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, fmt.Errorf("%s: byte %d: %w", path, d.InputOffset(), err)
	}
	if d.More() {
		return c, fmt.Errorf("%s: byte %d: more than one object", path, d.InputOffset())
	}
	for _, v := range []float64{float64(c.Base), float64(c.PerMiB), c.HeapMiB, c.PerTracked, c.PerFreed, c.Slowdown} {
		if !(v >= 0) {
			return c, fmt.Errorf("%s: negative coefficient %v", path, v)
		}
	}
	return c, nil
}

// A price is what a cycle and the refusal ladder cost, as flags say it.
type price struct{ cycle, ladder, file string }

func (p *price) bind(cmd *cobra.Command, cycle, ladder string) {
	f := cmd.Flags()
	f.StringVar(&p.cycle, "cycle", cycle, "how long one collection takes: a `duration`, or a list where several are compared")
	f.StringVar(&p.ladder, "ladder", ladder, "duration of the refusal ladder, as `time` (20ms) or in cycles (2x)")
	f.StringVar(&p.file, "cost", "", "cost model in a JSON `file` instead of --cycle (replay calibrate writes one)")
	cmd.MarkFlagsMutuallyExclusive("cycle", "cost")
}

// parse returns the cost models, one for each --cycle, and the ladder.
func (p *price) parse() ([]sim.Cost, sim.Ladder, error) {
	ladder, err := sim.ParseLadder(p.ladder)
	if err != nil {
		return nil, ladder, err
	}
	if p.file != "" {
		c, err := readCost(p.file)
		return []sim.Cost{c}, ladder, err
	}
	costs, err := parseEach(p.cycle, parseCycle)
	return costs, ladder, err
}
