package command

import (
	"crypto/sha256"
	"encoding/base64"
	"html"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The page of a report lets the browser run its own script, by its hash, and no
// other that got into it.
func TestReportRunsItsScriptOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.html")
	if status := run(t.Context(), []string{"report", "mlp", "--policies", "never", "--limits", "2x", "-o", path}, io.Discard, os.Stderr); status != 0 {
		t.Fatal(status)
	}
	page := read(t, path)
	policy := regexp.MustCompile(`script-src ([^;"]*)`).FindStringSubmatch(html.UnescapeString(page))
	if policy == nil {
		t.Fatal("the page says nothing about scripts")
	}
	n := 0
	for _, m := range regexp.MustCompile(`(?s)<script type="module">(.*?)</script>`).FindAllStringSubmatch(page, -1) {
		sum := sha256.Sum256([]byte(m[1]))
		n++
		if hash := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(policy[1], hash) {
			t.Errorf("script %d is not named: %s", n, policy[1])
		}
	}
	if n == 0 || strings.Contains(policy[1], "unsafe") {
		t.Errorf("%d scripts, %s", n, policy[1])
	}
}
