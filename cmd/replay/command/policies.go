package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/sim"
)

func newPolicies() *cobra.Command {
	return &cobra.Command{
		Use:   "policies",
		Short: "List the policies, their parameters and whose rules they are",
		Long: `policies lists what --policy and --policies take. Parameters follow the name
after a colon, separated by commas; the first may come without its key:
threshold:0.9, periodic:5ms, growth:0.5,overlap=false.`,
		Args: files(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := newPrinter(cmd.OutOrStdout())
			fmt.Fprint(out, policyList(true))
			return out.err
		},
	}
}

// defaultPolicies are what compare runs: doing nothing, the rules of the best
// known collectors, our own, and the optima that all are measured by.
var defaultPolicies = "never," + strings.Join(truer, ",") + ",rtorch,opencl,growth,sqrt,v8step,dotnet,pacer,optimum-blocking,optimum-overlap"

// truer are cudajl as its authors run it, which take a wait shorter than their polling
// for none, and the same without its pauses. Plain cudajl is the reference.
var truer = []string{"cudajl:poll=50us", "cudajl:poll=50us,overlap=true"}

// contenderNames returns every name that is known, policies first.
func contenderNames() []string {
	var names []string
	for _, p := range policy.List() {
		names = append(names, p.Name)
	}
	return append(names, sim.Optima()...)
}

// policyList describes every policy in a line, with its parameters if asked for.
func policyList(params bool) string {
	var b strings.Builder
	for _, p := range policy.List() {
		fmt.Fprintf(&b, "  %-16s  %s", p.Name, p.Doc)
		if p.Source != "" {
			fmt.Fprintf(&b, " (%s)", p.Source)
		}
		b.WriteString("\n")
		if !params {
			continue
		}
		for _, q := range p.Params {
			fmt.Fprintf(&b, "    %-14s  %s; %s; default %s\n", q.Name+"=", q.Doc, q.Values, q.Default)
		}
	}
	for _, name := range sim.Optima() {
		fmt.Fprintf(&b, "  %-16s  %s\n", name, optimumDoc[name])
	}
	return b.String()
}

var optimumDoc = map[string]string{
	"optimum-blocking":  "the best schedule of blocking cycles, found knowing the whole recording",
	"optimum-overlap":   "the best schedule found of cycles that run beside the program",
	"optimum-objective": "the schedule found that loses the least time, knowing the whole recording",
}
