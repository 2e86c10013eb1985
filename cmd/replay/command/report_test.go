package command

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/cmd/replay/chart"
)

// reportOf writes a report and returns its text.
func reportOf(t *testing.T, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	var stderr bytes.Buffer
	if status := run(t.Context(), append([]string{"report", "-o", file}, args...), io.Discard, &stderr); status != 0 {
		t.Fatalf("replay report: %s", &stderr)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The page says what compare says, of the same limits.
func TestReportSaysWhatCompareSays(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if status := run(t.Context(), []string{"compare", "mlp", "--policies", reportPolicies, "--cycle", "10ms", "-o", ""}, &stdout, &stderr); status != 0 {
		t.Fatal(&stderr)
	}
	page := strings.NewReplacer("&#43;", "+", "&#39;", "'").Replace(reportOf(t, "mlp"))
	_, lost, _ := strings.Cut(stdout.String(), "Time lost")
	lines := strings.Split(lost, "\n")
	if !strings.Contains(page, "Time lost"+lines[0]) {
		t.Errorf("the page lacks %q", "Time lost"+lines[0])
	}
	if !strings.Contains(page, "cycle 10ms: pacer loses least") || !strings.Contains(lost, "cycle 10ms: pacer loses least") {
		t.Errorf("the verdicts differ: %s", lost)
	}
	for _, line := range lines[2:8] { // a policy to a line
		for _, cell := range strings.Fields(line) {
			if !strings.Contains(page, ">"+cell+"<") {
				t.Errorf("the page lacks %s of %q", cell, line)
			}
		}
	}
}

// Every cycle is in the data, with the ladder's, and says why it ran.
func TestReportHasEveryCycle(t *testing.T) {
	page := reportOf(t, "mlp", "--policies", "never,pacer", "--limits", "1.25x")
	packed := regexp.MustCompile(`id="data">"([^"]+)"<`).FindStringSubmatch(page)
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
	var data chart.Data
	if err := json.NewDecoder(unzip).Decode(&data); err != nil {
		t.Fatal(err)
	}
	var stdout bytes.Buffer
	if status := run(t.Context(), []string{"run", "mlp", "--policy", "never", "--limit", "1.25x", "--format", "json"}, &stdout, io.Discard); status != 0 {
		t.Fatal("replay run")
	}
	var r struct {
		Forced int `json:"refusal_collections"`
	}
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	c := data.Recordings[0].Runs[0].Cycles
	forced := 0
	for _, f := range c.Forced {
		forced += f
	}
	if forced != r.Forced || forced == 0 || len(c.Start) != forced {
		t.Errorf("%d cycles, %d of them forced; run says %d", len(c.Start), forced, r.Forced)
	}
	for _, run := range data.Recordings[0].Runs {
		for i, k := range run.Cycles.Reason {
			if k < 0 || k >= len(data.Recordings[0].Reasons) || run.Cycles.Took[i] <= 0 {
				t.Fatalf("cycle %d has reason %d and took %v", i, k, run.Cycles.Took[i])
			}
		}
	}
}

func TestReportKnowsItsSource(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mine <1>.txt")
	if status := run(t.Context(), []string{"export", "mlp", "--to", "text", "-o", file}, io.Discard, io.Discard); status != 0 {
		t.Fatal("replay export")
	}
	page := reportOf(t, file, "--policies", "pacer", "--limits", "2x")
	for _, want := range []string{"mine &lt;1&gt;.txt, ", "SHA-256 ", "<dt>command</dt>", "--policies=pacer", "no other policy ran"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
