package main

import (
	"math"
	"testing"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool/cuda"
)

func TestModelOnGPUFollowsReference(t *testing.T) {
	if _, err := cuda.Count(); err != nil {
		t.Skipf("no GPU: %v", err)
	}
	o := options{pool: "cuda", limit: "1GiB"}
	session, err := o.open(policy.MustParse("cudajl"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := session.close(); err != nil {
			t.Error(err)
		}
	}()

	shape := shape{observations: 30_000, features: 1000, batch: 2048}
	const epochs = 2
	want := reference(shape, epochs)
	m := newModel(shape, session.lib)
	for e := range epochs {
		loss, err := m.epoch()
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(loss-want[e]) > 1e-3*want[e] {
			t.Errorf("epoch %d: loss %v, want %v", e, loss, want[e])
		}
	}
}
