package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// probe drives the page as a reader would, and leaves what it found in the
// document for the test to read.
const probe = `<script>
addEventListener("load", () => setTimeout(() => {
  const name = document.querySelector(".u-legend .u-series:nth-child(3) th");
  const row = name.parentElement, before = row.classList.contains("u-off");
  name.click();
  const out = document.createElement("pre");
  out.id = "probe";
  out.textContent = JSON.stringify({
    charts: document.querySelectorAll(".uplot canvas").length,
    toggled: row.classList.contains("u-off") !== before,
    pictures: [...document.querySelectorAll("img.static")].filter((i) => i.offsetParent).length,
    wide: document.documentElement.scrollWidth > innerWidth,
    requests: performance.getEntriesByType("resource").filter((e) => !e.name.startsWith("data:")).map((e) => e.name),
  });
  document.body.append(out);
}, 500));
</script>`

// TestReportInBrowser opens a report in headless Chromium: it draws, toggles,
// asks for nothing, and says nothing on the console.
func TestReportInBrowser(t *testing.T) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium on this machine:", err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "report.html")
	var stderr bytes.Buffer
	if status := run(t.Context(), []string{"report", "mlp", "--policies", "never,cudajl", "-o", file}, io.Discard, &stderr); status != 0 {
		t.Fatalf("replay report: %s", &stderr)
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	page = bytes.Replace(page, []byte("</body>"), []byte(probe+"</body>"), 1)
	if err := os.WriteFile(file, page, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, width := range []string{"1280", "390"} {
		cmd := exec.Command(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
			"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+filepath.Join(dir, width),
			"--window-size="+width+",2000", "--virtual-time-budget=5000", "--enable-logging=stderr", "--dump-dom", "file://"+file)
		var log bytes.Buffer
		cmd.Stderr = &log
		dom, err := cmd.Output()
		if err != nil {
			t.Fatalf("chromium: %v\n%s", err, &log)
		}
		if strings.Contains(log.String(), "CONSOLE") {
			t.Errorf("width %s: the console says\n%s", width, &log)
		}
		want := `{"charts":4,"toggled":true,"pictures":0,"wide":false,"requests":[]}`
		_, found, _ := bytes.Cut(dom, []byte(`<pre id="probe">`))
		found, _, _ = bytes.Cut(found, []byte("</pre>"))
		if string(found) != want {
			t.Errorf("width %s: found %s, want %s", width, found, want)
		}
	}
}
