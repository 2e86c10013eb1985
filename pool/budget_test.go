package pool

import (
	"errors"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

func TestBudget(t *testing.T) {
	info, fail := pressure.Info{Free: 100, Total: 1000}, error(nil)
	var told []error
	asked := 0
	b := budget{
		Info:   func() (pressure.Info, error) { asked++; return info, fail },
		Failed: func(err error) { told = append(told, err) },
	}
	at := func(s int, reserved, want int64) {
		t.Helper()
		if got := b.At(time.Duration(s)*time.Second, reserved).Budget; got != want {
			t.Errorf("budget at %d s = %d, want %d", s, got, want)
		}
	}
	at(0, 50, 150)
	info.Free = 500
	at(9, 50, 150) // holds for ten seconds
	at(10, 50, 550)
	fail = errors.New("no answer")
	at(20, 70, 550) // goes on with what it knows
	at(30, 70, 550)
	if len(told) != 1 {
		t.Errorf("told %d times of one row of failures", len(told))
	}
	fail = nil
	at(40, 0, 500)
	if asked != 5 {
		t.Errorf("asked %d times, want 5", asked)
	}
}

func TestBudgetPrefersLimits(t *testing.T) {
	know := func() (pressure.Info, error) { return pressure.Info{Free: 100, Total: 1000}, nil }
	soft, hard := pressure.Limit{Bytes: 300}, pressure.Limit{Percent: 80}
	for _, c := range []struct {
		limits pressure.Limits
		want   estimate
	}{
		{pressure.Limits{Soft: soft, Hard: hard}, estimate{Soft: 300, Hard: 800, Budget: 800}},
		{pressure.Limits{Soft: soft}, estimate{Soft: 300, Budget: 300}},
		{pressure.Limits{}, estimate{Budget: 110}},
	} {
		b := budget{Limits: c.limits, Info: know}
		if got := b.At(0, 10); got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.limits, got, c.want)
		}
	}
	silent := budget{
		Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 7}}, Failed: func(error) {},
		Info: func() (pressure.Info, error) { return pressure.Info{}, errors.New("it does not say") },
	}
	if got := silent.At(0, 0); got.Budget != 7 {
		t.Errorf("without an answer: %+v", got)
	}
	silent.SetLimits(pressure.Limits{})
	if got := silent.At(0, 5); got != (estimate{}) {
		t.Errorf("without an answer or a limit: %+v", got)
	}
}

func TestSetLimitsAsksAnew(t *testing.T) {
	asked := 0
	b := budget{Limits: pressure.Limits{Hard: pressure.Limit{Percent: 50}}, Info: func() (pressure.Info, error) {
		asked++
		return pressure.Info{Total: 1000, Free: 1000}, nil
	}}
	if e := b.At(0, 0); e.Hard != 500 {
		t.Errorf("%+v", e)
	}
	b.At(budgetInterval-1, 0)
	b.SetLimits(pressure.Limits{Hard: pressure.Limit{Percent: 30}, Soft: pressure.Limit{Bytes: 100}})
	if e := b.At(budgetInterval-1, 0); e.Hard != 300 || e.Soft != 100 || asked != 2 {
		t.Errorf("%+v after %d questions", e, asked)
	}
	if b.At(2*budgetInterval-2, 0); asked != 2 {
		t.Errorf("%d questions before the last answer was old", asked)
	}
	if b.At(2*budgetInterval-1, 0); asked != 3 {
		t.Errorf("%d questions once it was", asked)
	}
}
