package command

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Many policies do not make a page larger: they share the levels of memory that it may have.
func TestReportIsBounded(t *testing.T) {
	policies := make([]string, 14)
	for i := range policies {
		policies[i] = fmt.Sprint("threshold:0.", 500+i)
	}
	file := filepath.Join(t.TempDir(), "report.html")
	replay(t, "report", "mlp", "--policies", strings.Join(policies, ","), "--limits", "1.25x", "--device", "1MiB", "-o", file) // which no advice fits
	page, err := plain(".html", []byte(html.UnescapeString(read(t, file))))
	levels := 0
	for _, rest := range strings.Split(string(page), `"t":"`)[1:] {
		levels += base64.StdEncoding.DecodedLen(strings.IndexByte(rest, '"')) / 4 // 32-bit numbers
	}
	if err != nil || levels < 100_000 || levels > 500_000 {
		t.Errorf("the page has %d levels, %v", levels, err)
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
