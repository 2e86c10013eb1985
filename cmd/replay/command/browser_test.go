package command

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// probe drives the page as a reader would, and leaves what it found in the
// document for the test to read.
const probe = `<script type="module">
const begin = () => {
  if (!document.querySelector(".uplot")) return setTimeout(begin, 50);
  const charts = () => document.querySelectorAll(".uplot canvas").length;
  const out = { charts: charts() };
  const toggle = document.querySelector(".panel .legend button");
  toggle.focus();
  toggle.click();
  out.toggled = toggle.ariaPressed === "false" && document.activeElement === toggle;
  document.querySelectorAll(".memory button")[1].click();
  out.why = /^1 of \d+: at [\d.]+ s /.test(document.querySelector(".said").textContent);
  const tabs = [...document.querySelectorAll("[role=tab]")];
  for (const tab of tabs) tab.click();
  out.tabs = tabs.length;
  out.all = charts();
  tabs[0].dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
  out.keys = tabs[1].ariaSelected === "true" && tabs[0].ariaSelected === "false";
  const box = document.querySelector(".collections");
  box.open = true;
  out.named = [...document.querySelectorAll("[role=img], [role=tabpanel]")].every((e) => e.getAttribute("aria-label") || e.querySelector("title"));
  out.pictures = [...document.querySelectorAll(".static")].filter((e) => e.offsetParent).length;
  out.wide = document.documentElement.scrollWidth > innerWidth;
  out.requests = performance.getEntriesByType("resource").filter((e) => !e.name.startsWith("data:")).map((e) => e.name);
  setTimeout(() => {
    out.collections = box.querySelectorAll("tr").length > 10;
    const pre = document.createElement("pre");
    pre.id = "probe";
    pre.textContent = JSON.stringify(out);
    document.body.append(pre);
  }, 100);
};
begin();
</script>`

// TestReportInBrowser opens a report in headless Chromium: it draws,
// answers mouse and keyboard, asks for nothing, and says nothing on the console.
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
	own := strings.TrimSuffix(strings.TrimPrefix(probe, `<script type="module">`), "</script>")
	sum := sha256.Sum256([]byte(own)) // the page lets no script run that it does not name
	page = bytes.Replace(page, []byte("script-src "), []byte("script-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"' "), 1)
	if err := os.WriteFile(file, page, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, width := range []string{"1440", "900", "390"} {
		cmd := exec.Command(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
			"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+filepath.Join(dir, width),
			"--window-size="+width+",2000", "--virtual-time-budget=20000", "--enable-logging=stderr", "--dump-dom", "file://"+file)
		var log bytes.Buffer
		cmd.Stderr = &log
		dom, err := cmd.Output()
		if err != nil {
			t.Fatalf("chromium: %v\n%s", err, &log)
		}
		if strings.Contains(log.String(), "CONSOLE") {
			t.Errorf("width %s: the console says\n%s", width, &log)
		}
		want := `{"charts":3,"toggled":true,"why":true,"tabs":5,"all":9,"keys":true,"named":true,"pictures":0,"wide":false,"requests":[],"collections":true}`
		_, found, _ := bytes.Cut(dom, []byte(`<pre id="probe">`))
		found, _, _ = bytes.Cut(found, []byte("</pre>"))
		if string(found) != want {
			t.Errorf("width %s: found %s, want %s", width, found, want)
		}
	}
}
