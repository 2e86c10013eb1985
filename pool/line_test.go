package pool

import (
	"errors"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

// hung is a Reclaimable whose Purge waits until the test lets it go.
type hung struct{ entered, open chan struct{} }

func newHung() *hung { return &hung{make(chan struct{}), make(chan struct{})} }

func (g *hung) Purge() {
	g.entered <- struct{}{}
	<-g.open
}
func (*hung) Drop() {}

func waitForLine(t *testing.T, p *Pool, n int32) {
	t.Helper()
	for end := time.Now().Add(time.Minute); p.ladder.waiting.Load() != n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d in line, want %d", p.ladder.waiting.Load(), n)
		}
	}
}

// Those who are refused are served in the order in which they came. Each climbs
// until Purge; then the test frees one block.
func TestFirstComeFirstServed(t *testing.T) {
	const block, others = 1 << 20, 6
	p := newPool(t, Config{Limits: pressure.Limits{Hard: pressure.Limit{Bytes: others * block}}, Direct: true})
	g := newHung()
	defer p.Register(g)()
	var held []Block
	for range others {
		b, err := p.Alloc(block, 0)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, b)
	}
	type service struct {
		number int
		Block
	}
	served := make(chan service, others)
	for k := range others {
		go func() {
			b, err := p.Alloc(block, 0)
			if err != nil {
				t.Error(err)
			}
			served <- service{k, b}
		}()
		waitForLine(t, p, int32(k+1))
	}
	for k := range others {
		<-g.entered
		p.Free(held[k])
		g.open <- struct{}{}
		s := <-served
		if s.number != k {
			t.Errorf("number %d was served when it was number %d's turn", s.number, k)
		}
		defer p.Free(s.Block)
	}
}

// Nobody stands in line for ever: a Purge that hangs holds up who has called it,
// and the others for a second.
func TestLineIsBounded(t *testing.T) {
	const block = 1 << 20
	p := newPool(t, Config{Limits: pressure.Limits{Hard: pressure.Limit{Bytes: block}}, Direct: true})
	g := newHung()
	cancel := p.Register(g)
	held, err := p.Alloc(block, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Free(held)
	failed := make(chan error, 2)
	alloc := func() {
		_, err := p.Alloc(block, 0)
		failed <- err
	}
	go alloc()
	<-g.entered
	cancel() // for those who come now
	go alloc()
	waitForLine(t, p, 2)
	if err := <-failed; !errors.Is(err, ErrOutOfMemory) {
		t.Error(err)
	}
	waitForLine(t, p, 1)
	close(g.open)
	if err := <-failed; !errors.Is(err, ErrOutOfMemory) {
		t.Error(err)
	}
	waitForLine(t, p, 0)
}
