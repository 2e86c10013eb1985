package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats"
	"github.com/eagergc/eagergc/trace/formats/samples"
	"github.com/eagergc/eagergc/trace/formats/synthetic"
)

func load(names []string) (all []*trace.Trace, err error) {
	if i := slices.Index(names, "all"); i >= 0 {
		names = slices.Concat(names[:i], samples.All(), names[i+1:])
	}
	for _, name := range names {
		some, err := open(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, some...)
	}
	return all, nil
}

func open(name string) ([]*trace.Trace, error) {
	if text, ok := strings.CutPrefix(name, "synthetic:"); ok {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("want a seed after the colon, such as synthetic:7")
		}
		var all []*trace.Trace
		for _, shape := range synthetic.Shapes() {
			t, err := synthetic.Open(shape, seed)
			if err != nil {
				return nil, err
			}
			all = append(all, t)
		}
		return all, nil
	}
	read := samples.Open
	if !slices.Contains(samples.All(), name) {
		read = func(path string) (*trace.Trace, error) { return formats.Opener{Memory: 2 << 30}.Open(path) }
	}
	t, err := read(name)
	if err != nil {
		return nil, err
	}
	return []*trace.Trace{t}, nil
}

// contenders parses policies of this package's tables. It panics if one cannot be parsed.
func contenders(names ...string) []experiment.Contender {
	all, err := experiment.ParseContenders(strings.Join(names, ","))
	if err != nil {
		panic(err)
	}
	return all
}

// compile prepares recordings for replays. Each is replayed in the space in which it allocates
// most.
func compile(programs []*trace.Trace) (loads []*sim.Workload, err error) {
	for _, p := range programs {
		w, err := experiment.Compile(p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		loads = append(loads, w)
	}
	return loads, nil
}
