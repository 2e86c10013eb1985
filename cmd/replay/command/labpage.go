package command

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"html/template"

	"github.com/eagergc/eagergc/cmd/replay/chart"
	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/samples"
)

// A simulator is the part of the lab that a report does not have.
type simulator struct {
	Connect  template.JS // source of the parts in the content security policy
	Samples  []group
	Policies []string
	Memory   int64 // of the machine that made the page, in bytes; 0: unknown
	Parts    []part
}

type group struct {
	Name  string
	Names []string
}

// A part is a text in the page: the program or a recording in base64, or a script.
type part struct {
	Name string
	Text template.JS // JSON
}

// newSimulator returns the simulator of a page. A whole page contains all its parts.
func newSimulator(b *labBuild, whole bool) (*simulator, error) {
	worker, err := readAssets("worker.js")
	if err != nil {
		return nil, err
	}
	machine, _ := pressure.HostMemory() // 0 where the system does not say
	l := &simulator{Connect: "'self'", Policies: contenderNames(), Memory: machine.Total}
	l.Samples = []group{{"PyTorch, on a GPU", samples.Names()}, {"Go, with C libraries", samples.Programs()}, {"Go, with GoMLX on a GPU", samples.GoMLX()}}
	text, err := json.Marshal(b.glue + worker)
	if err != nil {
		return nil, err
	}
	l.Parts = []part{{"worker", template.JS(text)}}
	if !whole {
		return l, nil
	}
	l.Connect = "'none'"
	names := []string{programPart}
	for _, s := range samples.All() {
		names = append(names, samplePart+s)
	}
	for _, name := range names {
		data, err := b.part(name)
		if err != nil {
			return nil, err
		}
		l.Parts = append(l.Parts, part{name, template.JS(`"` + base64.StdEncoding.EncodeToString(data) + `"`)})
	}
	return l, nil
}

// labPage returns the page of the lab without a recording: an empty report.
func labPage(b *labBuild, whole bool) (*page, error) {
	w, err := sim.Compile(&trace.Trace{Events: []trace.Event{{Kind: trace.Alloc, ID: 1, Bytes: 1}}}, 0)
	if err != nil {
		return nil, err
	}
	contenders, err := experiment.ParseContenders("never")
	if err != nil {
		return nil, err
	}
	g := &experiment.Grid{Workloads: []*sim.Workload{w}, Limits: []experiment.Limit{{Factor: 1}}, Costs: []sim.Cost{{}}, Contenders: contenders}
	if err := g.Run(context.Background(), nil); err != nil {
		return nil, err
	}
	r := pageRecording{ID: "recording", Name: "no recording yet", Charts: chart.NewBuilder(g, 0, 0).Figures(0, nil)}
	p := &page{Title: "The lab", Verdict: "When should a program collect garbage, and under which limit? Open a recording, move the dials, and see.", Recordings: []pageRecording{r}}
	if p.Data, err = script(&chart.Data{Policies: []chart.PolicyLook{}, Recordings: []chart.Recording{{}}}); err != nil {
		return nil, err
	}
	p.Provenance = []entry{{"replay", version()}}
	if p.Live, err = newSimulator(b, whole); err != nil {
		return nil, err
	}
	return p, nil
}
