package command

import (
	"path/filepath"
	"reflect"
	"testing"
)

// probe uses a report as a reader would, and reports its charts and tables.
const probe = `(async () => {
  const charts = () => document.querySelectorAll(".uplot canvas").length;
  const out = { Charts: charts() };
  const toggle = document.querySelector(".panel .legend button");
  toggle.focus();
  toggle.click();
  out.Toggled = toggle.ariaPressed === "false" && document.activeElement === toggle;
  document.querySelectorAll(".memory button")[1].click();
  out.Why = /^1 of \d+: at [\d.]+ s /.test(document.querySelector(".said").textContent);
  const tabs = [...document.querySelectorAll("[role=tab]")];
  for (const tab of tabs) tab.click();
  out.Tabs = tabs.length;
  out.All = charts();
  tabs[0].dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
  out.Keys = tabs[1].ariaSelected === "true" && tabs[0].ariaSelected === "false";
  const box = document.querySelector(".collections");
  const opened = new Promise((done) => box.addEventListener("toggle", done));
  box.open = true;
  out.Named = [...document.querySelectorAll("[role=img], [role=tabpanel]")].every((e) => e.getAttribute("aria-label") || e.querySelector("title"));
  out.Pictures = [...document.querySelectorAll(".static")].filter((e) => e.offsetParent).length;
  out.Wide = document.documentElement.scrollWidth > innerWidth;
  await opened;
  out.Collections = box.querySelectorAll("tr").length > 10;
  return out;
})()`

// TestReportInBrowser opens a report in headless Chromium: it draws,
// answers mouse and keyboard, asks for nothing, and says nothing on the console.
func TestReportInBrowser(t *testing.T) {
	t.Parallel()
	c := newChromium(t)
	file := filepath.Join(t.TempDir(), "report.html")
	replay(t, "report", "mlp", "--policies", "never,cudajl", "--limits", "1.25x,1.5x,2x", "-o", file)
	type found struct {
		Charts, Tabs, All, Pictures                  int
		Toggled, Why, Keys, Named, Wide, Collections bool
	}
	want := found{Charts: 3, Toggled: true, Why: true, Tabs: 5, All: 9, Keys: true, Named: true, Collections: true}
	for _, width := range []int{1440, 900, 390} {
		c.screen(width)
		c.requests = nil
		c.open("file://" + file)
		c.until(`document.readyState === "complete" && document.querySelector(".uplot")`)
		var got found
		if c.eval(probe, &got); !reflect.DeepEqual(got, want) {
			t.Errorf("width %d: found %+v, want %+v", width, got, want)
		}
		wellBehaved(t, c, "")
	}
}
