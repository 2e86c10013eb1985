package command

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"html/template"

	"github.com/eagergc/eagergc/cmd/replay/chart"
	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/samples"
)

// An inside is what a page has beside a report's: the simulator.
type inside struct {
	Connect  template.JS // where the page may load its parts from
	Samples  []group
	Policies []string
	Mine     string // the program that the page's rule becomes
	Parts    []part
}

type group struct {
	Name  string
	Names []string
}

// A part is a text in the page: a program or a recording in base64, or a script.
type part struct {
	Name string
	Text template.JS // JSON
}

// newLivePart makes the live part of a page. Whole pages carry all that others load.
func newLivePart(b *labBuild, whole bool) (*inside, error) {
	worker, err := readAssets("fzstd.js", "worker.js")
	if err != nil {
		return nil, err
	}
	program, err := readAssets("mine/main.go")
	if err != nil {
		return nil, err
	}
	l := &inside{Connect: "'self'", Policies: contenderNames(), Mine: program}
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
	names := []string{"lab", "all"}
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

// labPage is a report of nothing yet: the page of the lab before a recording comes.
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
	if p.Live, err = newLivePart(b, whole); err != nil {
		return nil, err
	}
	return p, nil
}
