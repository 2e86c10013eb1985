package debug_test

import (
	"bytes"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/debug"
	"github.com/eagergc/eagergc/pool"
)

// TestPageInBrowser opens the page of a working program in headless Chromium,
// as wide as a desk and as narrow as a phone: the charts are drawn from
// readings fetched after the page, and the console says nothing. With
// EAGERGC_SCREENSHOTS set to a folder it leaves pictures there.
func TestPageInBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium on this machine:", err)
	}
	c, p := program(t)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			if _, err := pool.NewArray[byte](p, 1<<20, 0); err != nil {
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
	server := httptest.NewServer(debug.Handler(c, p))
	defer server.Close()

	path := regexp.MustCompile(`<path class="(live|reserved|limit)"[^>]* d="M[0-9][^"]*L[^"]*"`)
	for _, width := range []string{"1280", "390"} {
		cmd, log := browser(t, chromium, width, "--virtual-time-budget=4000", "--dump-dom", server.URL)
		dom, err := cmd.Output()
		if err != nil {
			t.Fatalf("chromium: %v\n%s", err, log)
		}
		if strings.Contains(log.String(), "CONSOLE") {
			t.Errorf("width %s: the console says\n%s", width, log)
		}
		if n := len(path.FindAll(dom, -1)); n != 3 {
			t.Errorf("width %s: %d of 3 lines are drawn in\n%s", width, n, dom)
		}
	}
	dir := os.Getenv("EAGERGC_SCREENSHOTS")
	if dir == "" {
		return
	}
	for name, flags := range map[string][]string{"desk-light": {"1280"}, "desk-dark": {"1280", "--blink-settings=preferredColorScheme=0"}, "phone-light": {"500"}, "phone-dark": {"500", "--blink-settings=preferredColorScheme=0"}} {
		cmd, log := browser(t, chromium, flags[0], append(flags[1:], "--virtual-time-budget=20000", "--screenshot="+filepath.Join(dir, name+".png"), server.URL)...)
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
