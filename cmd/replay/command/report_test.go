package command

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/cmd/replay/chart"
)

// reportOf writes a report and returns its text.
func reportOf(t *testing.T, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	replay(t, append([]string{"report", "-o", file}, args...)...)
	return html.UnescapeString(read(t, file))
}

// The page agrees with compare at the same limits.
func TestReportSaysWhatCompareSays(t *testing.T) {
	page := reportOf(t, "mlp")
	_, lost, _ := strings.Cut(replay(t, "compare", "mlp", "--policies", reportPolicies, "--cycle", "10ms", "-o", ""), "Time lost")
	lines := strings.Split(lost, "\n")
	for _, want := range []string{"Time lost" + lines[0], "cycle 10ms: pacer loses least"} {
		if !strings.Contains(page, want) || !strings.Contains("Time lost"+lost, want) {
			t.Errorf("not both have %q", want)
		}
	}
	for _, line := range lines[2:8] { // a policy to a line
		for _, cell := range strings.Fields(line) {
			if !strings.Contains(page, ">"+cell+"<") {
				t.Errorf("the page lacks %s of %q", cell, line)
			}
		}
	}
}

var pageData = regexp.MustCompile(`id="data">"([^"]+)"<`)

// dataOf unpacks the data of a page.
func dataOf(t *testing.T, page string) (data chart.Data) {
	t.Helper()
	packed := pageData.FindStringSubmatch(page)
	if packed == nil {
		t.Fatal("no data")
	}
	raw, err := base64.StdEncoding.DecodeString(packed[1])
	if err != nil {
		t.Fatal(err)
	}
	unzip, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(unzip).Decode(&data); err != nil {
		t.Fatal(err)
	}
	return data
}

// Many policies do not make a page larger: they share the levels of memory that it may have.
func TestReportIsBounded(t *testing.T) {
	policies := make([]string, 20)
	for i := range policies {
		policies[i] = fmt.Sprint("threshold:0.", 500+i)
	}
	levels := 0
	for _, r := range dataOf(t, reportOf(t, "mlp", "--policies", strings.Join(policies, ","), "--limits", "1.25x")).Recordings[0].Runs {
		levels += base64.StdEncoding.DecodedLen(len(r.T)) / 4 // 32-bit numbers
	}
	if levels > 500_000 {
		t.Errorf("the page has %d levels", levels)
	}
}

// Every cycle is in the data, with those of the ladder, and has a reason.
func TestReportHasEveryCycle(t *testing.T) {
	data := dataOf(t, reportOf(t, "mlp", "--policies", "never,pacer", "--limits", "1.25x"))
	for i, policy := range []string{"never", "pacer"} {
		var p promise
		if err := json.Unmarshal([]byte(replay(t, "run", "mlp", "--policy", policy, "--limit", "1.25x", "--json")), &p); err != nil {
			t.Fatal(err)
		}
		c := data.Recordings[0].Runs[i].Cycles
		forced := len(slices.DeleteFunc(slices.Clone(c.Forced), func(f int) bool { return f == 0 }))
		if forced != p.Refusals || len(c.Start) == 0 || p.Refusals+p.Collections-len(c.Start) > 1 { // one may be under way at the end
			t.Errorf("%s: %d cycles, %d of them forced; run says %+v", policy, len(c.Start), forced, p)
		}
		for i, k := range c.Reason {
			if k < 0 || k >= len(data.Recordings[0].Reasons) || c.Took[i] <= 0 {
				t.Fatalf("cycle %d has reason %d and took %v", i, k, c.Took[i])
			}
		}
	}
}

func TestReportKnowsItsSource(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine <1>.txt")
	replay(t, "export", "mlp", "--to", "text", "-o", file)
	page := reportOf(t, file, "--policies", "cudajl", "--limits", "2x", "--cycle", "1ms,3ms")
	for _, want := range []string{"mine <1>.txt, ", "The cost of a collection is cycle 3ms.", "SHA-256 ", "<dt>command</dt>", "--policies=cudajl", "no other policy ran", "the smallest, with cudajl:"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	factor := regexp.MustCompile(`at [0-9.]+ [KMG]iB \(([0-9.]+)x\)`).FindStringSubmatch(page)
	if f, err := strconv.ParseFloat(strings.Join(factor[min(1, len(factor)):], ""), 64); err != nil || f < 1 {
		t.Errorf("the advised limit, over what is reachable: %q", factor)
	}
}

// The page of a report lets the browser run its own script, by its hash, and no other one.
func TestReportRunsItsScriptOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.html")
	replay(t, "report", "mlp", "--policies", "never", "--limits", "2x", "-o", path)
	page := read(t, path)
	policy := regexp.MustCompile(`script-src ([^;"]*)`).FindStringSubmatch(html.UnescapeString(page))
	scripts := regexp.MustCompile(`(?s)<script type="module">(.*?)</script>`).FindAllStringSubmatch(page, -1)
	if policy == nil || len(scripts) == 0 || strings.Contains(policy[1], "unsafe") {
		t.Fatalf("%d scripts, %q", len(scripts), policy)
	}
	for i, m := range scripts {
		sum := sha256.Sum256([]byte(m[1]))
		if hash := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(policy[1], hash) {
			t.Errorf("script %d is not named: %s", i, policy[1])
		}
	}
}
