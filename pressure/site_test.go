package pressure

import (
	"reflect"
	"runtime"
	"strings"
	"testing"
)

func TestSiteText(t *testing.T) {
	var at [8]uintptr
	n := runtime.Callers(1, at[:])
	pkg := reflect.TypeFor[Bytes]().PkgPath() + "."
	text := SiteText(at[:n], pkg)
	if first := SiteLine(text); !strings.HasPrefix(first, pkg+"TestSiteText ") || !strings.Contains(first, "site_test.go:") {
		t.Errorf("innermost %q: want this test, which is in the package but not of it", first)
	}
	if strings.Contains(text, "goexit") || strings.Count(text, "\n") != 1 {
		t.Errorf("want this test and what ran it, got\n%s", text)
	}
	if left := SiteText(at[:n], "testing."); !strings.HasPrefix(left, pkg) {
		t.Errorf("frames after the first other one were left out:\n%s", left)
	}
	if got := SiteText(nil, pkg); got != "" {
		t.Errorf("no stack: %q", got)
	}
}
