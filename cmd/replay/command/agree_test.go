package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/cmd/replay/lab/session"
	"github.com/eagergc/eagergc/sim"
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

// The figures of advise, run, compare and the lab for one policy, limit and cycle are the same. A
// run of the advice loses what was promised.
func TestCommandsAgree(t *testing.T) {
	names := []string{"array", "wasm"}
	if !testing.Short() {
		long := []string{"burst", "ppo", "rcnn", "serve", "spectral", "vit"} // of the eleven PyTorch programs
		names = slices.DeleteFunc(samples.All(), func(name string) bool { return slices.Contains(long, name) })
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const cycle, device, policies = "10ms", int64(140) << 30, "never,pacer"
			var a struct {
				*experiment.Advice
				Go string
			}
			line := replay(t, "advise", name, "--cycle", cycle, "--device", fmt.Sprint(device, "B"), "--policies", policies, "--worlds", "1", "--json")
			if err := json.Unmarshal([]byte(line), &a); err != nil || a.Advice == nil || a.Limit > device || a.Limit < a.Reachable {
				t.Fatal(line, err)
			}
			limit := fmt.Sprint(a.Limit, "B")
			line = replay(t, "compare", name, "--policies", a.Policy, "--limits", limit, "--cycle", cycle, "--json", "-o", "")
			var r sim.Result
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
			lost := float64(r.Objective()) / float64(r.Span)
			if r.ExposedPause != a.Choice.Exposed || math.Abs(lost-a.Choice.Lost) > 1e-9 || lost > 0.01 || r.RefusalCollections+r.FailedAllocs > 0 {
				t.Errorf("%+v was promised, a run has %+v and loses %v", a.Advice, r, lost)
			}
			if got := replay(t, "run", name, "--policy", a.Policy, "--limit", limit, "--cycle", cycle, "--json"); got != line {
				t.Errorf("run has\n%scompare\n%s", got, line)
			}
			file, err := samples.File(name)
			if err != nil {
				t.Fatal(err)
			}
			s := new(session.Session)
			if _, err := s.Load([]session.Source{{Name: name, From: bytes.NewReader(file)}}); err != nil {
				t.Fatal(err)
			}
			results, err := s.Sweep(session.Setting{Policies: []string{a.Policy}, Limits: []string{limit}, Cycle: cycle, Ladder: "2x"}, nil, nil)
			if got, _ := json.Marshal(results); err != nil || string(got) != "["+strings.TrimSpace(line)+"]" {
				t.Errorf("the lab has\n%s, %v, compare\n%s", got, err, line)
			}
			in, err := s.Advise(session.Setting{Policies: strings.Split(policies, ","), Cycle: cycle, Ladder: "2x"}, 0, 1, device, nil)
			if err != nil || in.Go != a.Go || in.Choice != a.Choice {
				t.Errorf("the lab advises %+v, %v", in, err)
			}
		})
	}
}
