package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/cmd/replay/lab/session"
	"github.com/eagergc/eagergc/trace/formats/samples"
)

// replay runs the command line, which must succeed, and returns its output.
func replay(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if status := run(t.Context(), args, &stdout, &stderr); status != 0 {
		t.Fatalf("replay %s: status %d: %s", strings.Join(args, " "), status, &stderr)
	}
	return stdout.String()
}

// An advice is the part of the JSON form of replay advise that the other commands repeat.
type advice struct {
	Policy    *string
	Limit     int64 `json:"limit_bytes"`
	Memory    int64 `json:"memory_bytes"`
	Reachable int64 `json:"peak_reachable_bytes"`
	Choice    struct {
		Exposed  float64 `json:"exposed_pause_ns"`
		Lost     float64 `json:"lost_share"`
		Refusals int
		Failed   int `json:"failed_allocs"`
	}
	Go string
}

// A promise is the expected result of a run of the advice, in the fields of its JSON form.
type promise struct {
	Policy      string
	Limit       int64   `json:"limit_bytes"`
	Exposed     float64 `json:"exposed_pause_ns"`
	Busy        float64 `json:"gc_busy_ns"`
	Span        float64 `json:"span_ns"`
	Refusals    int     `json:"refusal_collections"`
	Failed      int     `json:"failed_allocs"`
	Collections int
}

// pasted returns the policy and the limit that a Go line has, as the compiler reads them.
func pasted(t *testing.T, line string) (policy string, limit int64) {
	t.Helper()
	_, call, _ := strings.Cut(line, "= ")
	call, _, _ = strings.Cut(call, " //")
	e, err := parser.ParseExpr(call)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	ast.Inspect(e, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok {
			if text, err := strconv.Unquote(l.Value); err == nil {
				policy = text
			} else {
				limit, _ = strconv.ParseInt(l.Value, 10, 64)
			}
		}
		return true
	})
	return policy, limit
}

// The figures of advise, report, run, compare and the lab for one policy, limit and cycle
// are the same. The advice, pasted, loses what it promises. No limit is above the known memory.
func TestCommandsAgree(t *testing.T) {
	long := []string{"burst", "ppo", "rcnn", "serve", "spectral", "vit"} // of the eleven PyTorch programs
	names := slices.DeleteFunc(samples.All(), func(name string) bool { return slices.Contains(long, name) })
	all := []string{"array", "wasm"} // under all policies, and in a report; the others under two and in one world
	if testing.Short() {
		names = all
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const cycle, device = "10ms", int64(140) << 30
			given, policies, worlds := []string{name, "--cycle", cycle, "--device", "140GiB"}, advisePolicies, experiment.DefaultVariants
			whole := slices.Clone(given)
			if !slices.Contains(all, name) {
				policies, worlds = "never,pacer", 0
				given = append(given, "--policies", policies, "--worlds", "0")
			}
			var a, local advice
			for to, args := range map[*advice][]string{&a: given, &local: {name, "--cycle", cycle, "--policies", policies, "--worlds", "0"}} {
				if err := json.Unmarshal([]byte(replay(t, append([]string{"advise", "--json"}, args...)...)), to); err != nil {
					t.Fatal(err)
				}
			}
			if a.Limit > device || local.Limit > max(local.Memory, 0) || a.Policy != nil && a.Limit < a.Reachable {
				t.Errorf("limits of %d and %d bytes with %d and %d known", a.Limit, local.Limit, device, local.Memory)
			}
			text := replay(t, append([]string{"advise"}, given...)...)
			if a.Policy == nil {
				if !strings.Contains(text, "no policy refuses nothing") {
					t.Errorf("no policy, and\n%s", text)
				}
				return
			}
			policy, limit := pasted(t, a.Go)
			if policy != *a.Policy || limit != a.Limit || !strings.Contains(text, a.Go) {
				t.Errorf("%s of %s with %d bytes, and\n%s", a.Go, *a.Policy, a.Limit, text)
			}

			// The advice, run.
			at := []string{"--cycle", cycle, "--limits", fmt.Sprint(limit, "B")}
			line := replay(t, append([]string{"compare", name, "--policies", policy, "--json", "-o", ""}, at...)...)
			var p promise
			if err := json.Unmarshal([]byte(line), &p); err != nil {
				t.Fatal(err)
			}
			lost := (p.Exposed + 0.05*p.Busy) / p.Span
			if p.Exposed != a.Choice.Exposed || math.Abs(lost-a.Choice.Lost) > 1e-9 || lost > 0.01 || p.Refusals+p.Failed+a.Choice.Refusals+a.Choice.Failed > 0 {
				t.Errorf("%+v was promised, a run has %+v and loses %v", a, p, lost)
			}
			ran := []string{name, "--policy", policy, "--cycle", cycle, "--limit", fmt.Sprint(limit, "B")}
			if got := replay(t, append([]string{"run", "--json"}, ran...)...); got != line {
				t.Errorf("run has\n%scompare\n%s", got, line)
			}

			// The same in words.
			said := regexp.MustCompile(`: (\S+) with a limit of (\S+ .iB)\n(?s:.*), (\S+%)\s+of\s+the\s+time\s+lost`).FindStringSubmatch(text)
			if said == nil || said[1] != policy {
				t.Fatalf("%s is not advised:\n%s", policy, text)
			}
			row := regexp.MustCompile(`\(taken here\) +(\S+) +(\S+ .iB) +(\S+)`).FindStringSubmatch(text)
			if row == nil || row[1] != said[1] || row[2] != said[2] || row[3] != said[3] {
				t.Errorf("%q above, %q by cycle", said[1:], row)
			}
			if text := replay(t, append([]string{"run"}, ran...)...); !regexp.MustCompile(`time lost +` + said[3] + `: \(exposed pause \+ 0\.05 x`).MatchString(text) {
				t.Errorf("run does not lose %s:\n%s", said[3], text)
			}
			if slices.Contains(all, name) {
				report := reportOf(t, whole...)
				for _, want := range []string{">" + said[2] + "<", "with " + policy + ": no refusal, " + said[3] + " of the time lost"} {
					if !strings.Contains(report, want) {
						t.Errorf("the report lacks %q", want)
					}
				}
			}

			// The lab.
			file, err := samples.File(name)
			if err != nil {
				t.Fatal(err)
			}
			s := new(session.Session)
			if _, err := s.Load([]session.Source{{Name: name, From: bytes.NewReader(file)}}); err != nil {
				t.Fatal(err)
			}
			results, err := s.Sweep(session.Setting{Policies: []string{policy}, Limits: []string{fmt.Sprint(limit, "B")}, Cycle: cycle, Ladder: "2x"}, nil, nil)
			if err != nil || len(results) != 1 {
				t.Fatal(results, err)
			}
			if got, _ := json.Marshal(results[0]); string(got)+"\n" != line {
				t.Errorf("the lab has\n%s\ncompare\n%s", got, line)
			}
			in, err := s.Advise(session.Setting{Policies: strings.Split(policies, ","), Cycle: cycle, Ladder: "2x"}, 0, worlds, device, nil)
			if err != nil || in.Go != a.Go || in.Choice.Lost != a.Choice.Lost {
				t.Errorf("the lab advises %+v, %v", in, err)
			}
		})
	}
}
