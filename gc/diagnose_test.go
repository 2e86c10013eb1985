package gc

import (
	"math"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// Programs with a known cause are in gc/with/malloc, which has a real allocator; here is what decides.
func TestVerdict(t *testing.T) {
	const mib = 1 << 20
	at := func(anonymous, inUse, kept int64) footprint {
		return footprint{resident: pressure.Resident{Anonymous: anonymous * mib, Mapped: math.MaxInt32}, cInUse: inUse * mib, cKept: kept * mib}
	}
	for name, c := range map[string]struct {
		before, after, later footprint
		want                 string
	}{
		"half of it is freed":               {at(400, 390, 5), at(200, 190, 5), at(200, 190, 5), garbageLag},
		"freed, but the allocator keeps it": {at(400, 390, 5), at(400, 190, 205), at(400, 190, 205), garbageLag},
		"kept all along":                    {at(400, 10, 380), at(400, 10, 380), at(400, 10, 380), allocatorRetention},
		"grows":                             {at(400, 390, 5), at(400, 390, 5), at(450, 440, 5), reachableGrowth},
		"grows into what was kept":          {at(400, 100, 295), at(400, 100, 295), at(400, 200, 195), reachableGrowth},
		"grows again after much was freed":  {at(400, 390, 5), at(200, 190, 5), at(260, 250, 5), reachableGrowth},
		"falls further in the window":       {at(400, 390, 5), at(385, 375, 5), at(300, 290, 5), healthy},
		"stays":                             {at(400, 390, 5), at(395, 385, 5), at(396, 386, 5), healthy},
		"small":                             {at(20, 15, 4), at(10, 5, 4), at(12, 7, 4), healthy},
		"freed, no allocator known":         {at(400, -1, 0), at(200, -1, 0), at(200, -1, 0), garbageLag},
	} {
		d := Diagnosis{Verdict: healthy, before: c.before, after: c.after, later: c.later}
		if d.decide(); d.Verdict != c.want {
			t.Errorf("%s: %v (%s), want %v", name, d.Verdict, d.Reason, c.want)
		}
	}
}

func TestDiagnosisNamesWhatIsUnknown(t *testing.T) {
	c, err := New(Config{Policy: policy.Spec{}.New()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	SetAllocatorStats(func() (int64, int64) { return 3 << 20, 5 << 20 })
	if text := c.Diagnose(t.Context(), 0).String(); !strings.Contains(text, "5.00 MiB") {
		t.Errorf("the allocator's figures are missing:\n%s", text)
	}
	allocator.Store(nil)
	if text := c.Diagnose(t.Context(), 0).String(); !strings.Contains(text, "unknown") {
		t.Errorf("an allocator nobody reads is not named:\n%s", text)
	}
}

// TestDiagnosisHasEveryFigure: a row for each, with the three moments.
func TestDiagnosisHasEveryFigure(t *testing.T) {
	f := footprint{resident: pressure.Resident{Anonymous: 100 << 20, Mapped: 1 << 20}, goLive: 2 << 20, goKept: 3 << 20, goOther: 4 << 20, counted: 5 << 20, cInUse: 6 << 20, cKept: 7 << 20}
	later := f
	later.goLive = 9 << 20
	text := Diagnosis{before: f, after: f, later: later}.String()
	for _, want := range []string{"100.00 MiB", "2.00 MiB", "9.00 MiB", "3.00 MiB", "4.00 MiB", "5.00 MiB", "6.00 MiB", "7.00 MiB", "1.00 MiB", "91.00 MiB", "84.00 MiB"} {
		if !strings.Contains(text, " "+want) {
			t.Errorf("%s is missing:\n%s", want, text)
		}
	}
}
