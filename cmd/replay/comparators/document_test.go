package comparators_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/gc/policy"
)

var update = flag.Bool("update", false, "rewrite gc/policy/POLICIES.md and testdata")

// TestPoliciesDocument keeps the generated part of gc/policy/POLICIES.md, up to the chapter on our own rules.
func TestPoliciesDocument(t *testing.T) {
	const path, own = "../../../gc/policy/POLICIES.md", "\n# Our own rules\n"
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(file), own)
	if !ok {
		t.Fatalf("POLICIES.md has no %q", own)
	}
	var b, params strings.Builder
	b.WriteString(`# Policies

To the end of the parameters, this page is generated from ` + "`policy.List()`: `go test ./cmd/replay/comparators -run TestPoliciesDocument -update`" + `.
The comment of each type states its rule, its constants and their source.

A policy's text is its name, a colon, and parameters: ` + "`threshold:0.8`, `growth:0.5,min=1%`" + `. The first parameter may come without its name.
Some rules have constants for heaps of megabytes. Column "scaled" has their form for a device of gigabytes. Rules marked * are for studies: a program knows them
if it imports ` + "`github.com/eagergc/eagergc/cmd/replay/comparators`, as `replay`" + ` does.

| policy | collects | rule of | scaled |
|---|---|---|---|
`)
	study := ""
	for _, info := range policy.List() {
		scaled := info.Scaled
		if scaled != "" {
			scaled = "`" + scaled + "`"
		}
		fmt.Fprintf(&b, "| `%s`%s | %s | %s | %s |\n", info.Name, study, info.Doc, info.Source, scaled)
		if info.Name == "host" { // the last one of package policy
			study = " *"
		}
		var texts []string
		for _, q := range info.Params {
			texts = append(texts, fmt.Sprintf("`%s=%s`: %s (%s)", q.Name, q.Default, q.Doc, q.Values))
		}
		if texts != nil {
			fmt.Fprintf(&params, "| `%s` | %s |\n", info.Name, strings.Join(texts, "<br>"))
		}
	}
	fmt.Fprintf(&b, "\n## Parameters\n\n| policy | parameter = default: what it sets (what it takes) |\n|---|---|\n%s%s%s", &params, own, rest)
	switch {
	case string(file) == b.String():
	case *update:
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Error("POLICIES.md is out of date: run go test ./cmd/replay/comparators -run TestPoliciesDocument -update")
	}
}
