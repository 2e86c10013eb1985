package command

import (
	"bufio"
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
		Long: `policies lists the values of --policy and --policies. Parameters follow the name after
a colon, separated by commas. The first may come without its key: threshold:0.9,
periodic:5ms, growth:0.5,overlap=false.`,
		Args: files(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := bufio.NewWriter(cmd.OutOrStdout())
			fmt.Fprint(out, policyList(true))
			return out.Flush()
		},
	}
}

// defaultPolicies are the policies of compare: never, the rules of well-known collectors, our own,
// and the optima as references.
var defaultPolicies = "never,host," + strings.Join(truer, ",") + ",growth,sqrt,v8,dotnet,oxcaml,cpython,torchtitan,imgproxy,pacer,optimum-blocking,optimum-overlap"

// truer are cudajl as its authors run it, which ignores waits shorter than its polling, and the
// same without pauses. Plain cudajl is the reference.
var truer = []string{"cudajl:poll=50us", "cudajl:poll=50us,overlap=true"}

// contenderNames returns all known names, policies first.
func contenderNames() []string {
	var names []string
	for _, p := range policy.List() {
		names = append(names, p.Name)
	}
	return append(names, sim.Optima()...)
}

// policyList describes every policy in a line, with its parameters if params is set.
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
	"optimum-blocking":  "the best schedule of blocking cycles, found with the whole recording known",
	"optimum-overlap":   "the best schedule found of cycles that run beside the program",
	"optimum-objective": "the schedule found that loses the least time, with the whole recording known",
}
