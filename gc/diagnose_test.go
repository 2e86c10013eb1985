package gc

import (
	"math"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/pressure"
)

// Programs with a known cause are in gc/with/malloc, which has a real allocator; here is what decides.
func TestVerdict(t *testing.T) {
	const mib = 1 << 20
	at := func(anonymous, inUse, kept int64) Footprint {
		return Footprint{Resident: pressure.Resident{Anonymous: anonymous * mib, Mapped: math.MaxInt32}, CInUse: inUse * mib, CKept: kept * mib}
	}
	for name, c := range map[string]struct {
		before, after, later Footprint
		want                 Verdict
	}{
		"half of it is freed":               {at(400, 390, 5), at(200, 190, 5), at(200, 190, 5), GarbageLag},
		"freed, but the allocator keeps it": {at(400, 390, 5), at(400, 190, 205), at(400, 190, 205), GarbageLag},
		"kept all along":                    {at(400, 10, 380), at(400, 10, 380), at(400, 10, 380), AllocatorRetention},
		"grows":                             {at(400, 390, 5), at(400, 390, 5), at(450, 440, 5), ReachableGrowth},
		"grows into what was kept":          {at(400, 100, 295), at(400, 100, 295), at(400, 200, 195), ReachableGrowth},
		"stays":                             {at(400, 390, 5), at(395, 385, 5), at(396, 386, 5), Healthy},
		"small":                             {at(20, 15, 4), at(10, 5, 4), at(12, 7, 4), Healthy},
		"freed, no allocator known":         {at(400, -1, 0), at(200, -1, 0), at(200, -1, 0), GarbageLag},
	} {
		d := Diagnosis{Before: c.before, After: c.after, Later: c.later}
		if d.decide(); d.Verdict != c.want {
			t.Errorf("%s: %v (%s), want %v", name, d.Verdict, d.Reason, c.want)
		}
	}
}

func TestDiagnosisNamesWhatIsUnknown(t *testing.T) {
	c, err := New(Config{Policy: Spec{}.New()})
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
	f := Footprint{Resident: pressure.Resident{Anonymous: 100 << 20, Mapped: 1 << 20}, GoLive: 2 << 20, GoKept: 3 << 20, GoOther: 4 << 20, Counted: 5 << 20, CInUse: 6 << 20, CKept: 7 << 20}
	later := f
	later.GoLive = 9 << 20
	text := Diagnosis{Before: f, After: f, Later: later}.String()
	for _, want := range []string{"100.00 MiB", "2.00 MiB", "9.00 MiB", "3.00 MiB", "4.00 MiB", "5.00 MiB", "6.00 MiB", "7.00 MiB", "1.00 MiB", "91.00 MiB", "84.00 MiB"} {
		if !strings.Contains(text, " "+want) {
			t.Errorf("%s is missing:\n%s", want, text)
		}
	}
}
