package main

import (
	"math"
	"testing"

	"github.com/eagergc/eagergc/pool"
)

func TestModelFollowsReference(t *testing.T) {
	s := shape{observations: 3000, features: 100, batch: 256} // the last batch is short
	const epochs = 3
	want := reference(s, epochs)
	p, err := pool.New(pool.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m := newModel(s, &library{math: cpu{}, pool: p})
	for e := range epochs {
		loss, err := m.epoch()
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(loss-want[e]) > 1e-4*want[e] {
			t.Errorf("epoch %d: loss %v, want %v", e, loss, want[e])
		}
	}
	if want[2] > 0.9*want[0] {
		t.Errorf("losses %v: the model learns nothing", want)
	}
}
