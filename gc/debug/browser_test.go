package debug_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/debug"
	"github.com/eagergc/eagergc/pool/array"
)

// probe waits until the page has been renewed, and leaves its findings in the document. Labels of the charts are
// seen where they are painted.
const probe = `<script nonce="%s">
const texts = [];
const paintText = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
	const wide = this.measureText(text).width, left = x - { left: 0, center: wide / 2, right: wide }[this.textAlign];
	if (!Object.values(symbols).includes(text)) texts.push({ text, left, right: left + wide, y, end: this.canvas.clientWidth });
	paintText.call(this, text, x, y);
};
drawAll();
const overlap = texts.filter((a) => a.left < -1 || a.right > a.end + 1 || texts.some((b) => a !== b && Math.abs(a.y - b.y) < 12 && a.left < b.right + 4 && b.left < a.right + 4)).map((t) => t.text);
const labels = texts.length > 3;
const box = document.querySelectorAll("details")[1], before = document.querySelector("canvas").dataset.chart;
box.open = true;
const look = () => {
	const canvas = document.querySelector("canvas");
	if (canvas.dataset.chart === before) return setTimeout(look, 100);
	const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data, colors = new Set();
	for (let i = 0; i < pixels.length; i += 4) colors.add(pixels.slice(i, i + 4).join());
	const out = { open: box.open, drawn: colors.size > 5, marks: JSON.parse(canvas.dataset.chart).Events.length > 0, pauses: document.querySelectorAll("meter").length > 0, labels, overlap,
		wide: document.documentElement.scrollWidth > innerWidth, named: [...document.querySelectorAll("canvas")].every((e) => e.ariaLabel),
		folded: [...document.querySelectorAll(".wide table")].every((e) => e.closest("details")), size: document.documentElement.scrollHeight < 2500 };
	const pre = document.createElement("pre");
	pre.id = "probe";
	pre.textContent = JSON.stringify(out);
	document.body.append(pre);
};
look();
</script></html>`

// TestPageInBrowser opens the page of a working program in headless Chromium,
// as wide as a desk and as narrow as a phone: it draws what was, with labels that do not overlap, goes on,
// and the console says nothing. With
// EAGERGC_SCREENSHOTS set to a folder it leaves pictures there.
func TestPageInBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium on this machine:", err)
	}
	c, p, last := recorded(t)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			if _, err := array.New[byte](p, 1<<20); err != nil {
				t.Error(err)
				return
			}
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	defer func() { close(stop); <-done }()
	page := debug.Handler(c, p, last)
	nonce := regexp.MustCompile(`<script nonce="([^"]+)"`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != "" || r.URL.Path != "/probed" {
			page.ServeHTTP(w, r)
			return
		}
		made := httptest.NewRecorder()
		page.ServeHTTP(made, r)
		maps.Copy(w.Header(), made.Header())
		body := made.Body.String()
		_, _ = io.WriteString(w, strings.Replace(body, "</html>", fmt.Sprintf(probe, nonce.FindStringSubmatch(body)[1]), 1))
	}))
	defer server.Close()

	const want = `{"open":true,"drawn":true,"marks":true,"pauses":true,"labels":true,"overlap":[],"wide":false,"named":true,"folded":true,"size":true}`
	for _, width := range []string{"1440", "768", "390"} {
		cmd, log := browser(t, chromium, width, "--virtual-time-budget=20000", "--dump-dom", server.URL+"/probed")
		dom, err := cmd.Output()
		if err != nil {
			t.Fatalf("chromium: %v\n%s", err, log)
		}
		if strings.Contains(log.String(), "CONSOLE") {
			t.Errorf("width %s: the console says\n%s", width, log)
		}
		_, found, _ := strings.Cut(string(dom), `<pre id="probe">`)
		if found, _, _ = strings.Cut(found, "</pre>"); found != want {
			t.Errorf("width %s: found %s, want %s in\n%s", width, found, want, dom)
		}
	}
	dir := os.Getenv("EAGERGC_SCREENSHOTS")
	if dir == "" {
		return
	}
	for name, flags := range map[string][]string{"desk-light": {"1280"}, "desk-dark": {"1280", "--blink-settings=preferredColorScheme=0"}, "phone-light": {"500"}, "phone-dark": {"500", "--blink-settings=preferredColorScheme=0"}} {
		cmd, log := browser(t, chromium, flags[0], append(flags[1:], "--virtual-time-budget=4000", "--screenshot="+filepath.Join(dir, name+".png"), server.URL+"/probed")...)
		if err := cmd.Run(); err != nil {
			t.Fatalf("chromium: %v\n%s", err, log)
		}
	}
}

func browser(t *testing.T, chromium, width string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.Command(chromium, append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir=" + t.TempDir(),
		"--window-size=" + width + ",1400", "--enable-logging=stderr"}, args...)...)
	log := new(bytes.Buffer)
	cmd.Stderr = log
	return cmd, log
}
