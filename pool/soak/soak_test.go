package soak

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestSoakHolds plays until a fault was seen, for which a second is not always
// enough on a busy machine.
func TestSoakHolds(t *testing.T) {
	for seed := range uint64(20) {
		r, err := Run(context.Background(), Config{For: time.Second, Seed: seed, Limit: 64 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if !r.OK() || r.Operations == 0 {
			t.Errorf("%+v", r)
		}
		if float64(r.OutOfMemory) > 0.01*float64(r.Operations) {
			t.Errorf("%d of %d operations ran out of memory: the load is to fit", r.OutOfMemory, r.Operations)
		}
		if t.Failed() || r.Faults["refuse"] > 0 {
			return
		}
	}
	t.Error("no faults: nothing was tried")
}

// TestSoakSees breaks the program that is played, to show that the checks look.
func TestSoakSees(t *testing.T) {
	b := make([]byte, 64)
	write(b, 7)
	if at := differs(b, 7); at != -1 {
		t.Errorf("an untouched buffer differs at %d", at)
	}
	b[40]++
	if at := differs(b, 7); at != 40 {
		t.Errorf("a change at byte 40 is seen at %d", at)
	}
}
