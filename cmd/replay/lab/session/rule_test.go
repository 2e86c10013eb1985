package session

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace/formats/samples"
)

func TestRule(t *testing.T) {
	v := values{6, 10, 2, 1, 0.5, 0.25, 3} // live, limit, allocated, yield, wait, cost, since
	for rule, want := range map[string]bool{
		"live > 0.5*limit":                         true,
		"live > 0.6 * limit":                       false,
		"live >= 6e0 && !(allocated == 3)":         true,
		"wait > cost || live > 1e9":                true,
		"live > 1e9 || wait > cost && limit != 10": false,
		"-yield + 2*since - 5 < 1e-3":              true,
		"limit/allocated/5 == 1 && since <= 3":     true,
	} {
		of, err := parseRule(rule)
		if err != nil {
			t.Errorf("%s: %v", rule, err)
		} else if got := of(&v) != 0; got != want {
			t.Errorf("%s is %v", rule, got)
		}
	}
	for rule, want := range map[string]string{
		"":                      "1: the rule ends here",
		"live":                  "1: a rule says yes or no",
		"live > 0.5*limt":       `12: "limt" is none of live, limit`,
		"live >":                "7: the rule ends here",
		"(live > limit":         "14: want )",
		"live > limit limit":    `14: "limit": want an operator`,
		"live && limit > 1":     "6: && is of comparisons",
		"1 < live < 2":          "10: < is of numbers",
		"live > 1.2.3":          `8: "1.2.3" is none of`,
		"live > limit; exit(1)": `13: ";": want an operator`,
		"!live":                 "1: ! is of comparisons",
	} {
		if _, err := parseRule(rule); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", rule, err, want)
		}
	}
}

// What the page runs is what the program does that can be copied from it. The program is
// that of one's own policy, which needs no other file.
func TestRuleIsTheProgram(t *testing.T) {
	const dir = "../../command/page/mine"
	text, err := os.ReadFile(filepath.Join(dir, "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	rule := regexp.MustCompile(`\n\treturn (live.*)\n`).FindSubmatch(text)
	if rule == nil {
		t.Fatalf("no rule in\n%s", text)
	}
	traced, err := samples.Open("mlp")
	if err != nil {
		t.Fatal(err)
	}
	load, err := sim.Compile(traced, sim.SpaceOf(traced))
	if err != nil {
		t.Fatal(err)
	}
	s := &Session{load: load}
	got, err := s.Sweep(Setting{Policies: []string{mine}, Limits: []string{"1.5x"}, Cycle: "10ms", Ladder: "2x", Rule: string(rule[1])}, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(context.Background(), "go", "run", "./"+dir, "run", "mlp", "--policy", "mine", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var want sim.Result
	if err := json.Unmarshal(out, &want); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0] != want || want.Collections == 0 {
		t.Errorf("the page has %+v, the program %+v", got, want)
	}
}
