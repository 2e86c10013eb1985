package gc

import (
	"testing"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// A place is a source in a space of its own.
type place struct{ space pressure.Space }

func (p place) Sample() pressure.Sample { return pressure.Sample{Space: p.space} }
func (place) Allocated() int64          { return 0 }

// Memory of the host goes with a price, a device's up to its limit, unless somebody has chosen.
func TestDefaultPolicyIsOfTheSpace(t *testing.T) {
	chosen := func() policy.Policy { return policy.MustParse("growth:1").New() }
	for _, test := range []struct {
		name   string
		policy policy.Policy
		spaces []pressure.Space
		want   string
	}{
		{"host", nil, []pressure.Space{pressure.Host}, HostPolicy},
		{"device", nil, []pressure.Space{pressure.Device(0)}, DefaultPolicy},
		{"both", nil, []pressure.Space{pressure.Host, pressure.Device(1)}, DefaultPolicy},
		{"chosen", chosen(), []pressure.Space{pressure.Device(0)}, chosen().String()},
	} {
		c := embed(t, Config{Policy: test.policy})
		for _, s := range test.spaces {
			c.NewGate(place{s})
		}
		if got := c.Policy(); got != policy.MustParse(test.want).New().String() {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
	c := embed(t, Config{})
	c.SetPolicy(chosen())
	if c.NewGate(place{pressure.Device(0)}); c.Policy() != chosen().String() {
		t.Errorf("set: %s", c.Policy())
	}
}
