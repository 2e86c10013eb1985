package pprof_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/cuda"
	"github.com/eagergc/eagergc/trace/formats/poolpprof"
)

// Who holds the memory of a GPU. With EAGERGC_TEST_PROFILE the profile stays, in
// the file of that name.
func TestDevice(t *testing.T) {
	d, err := cuda.Open(0)
	if err != nil {
		t.Skipf("needs a GPU: %v", err)
	}
	defer d.Close()
	p, err := pool.New(pool.Config{Upstream: d.Memory(), Space: d.Space(), Sites: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var held []pool.Block
	for range 100 {
		held = append(held, layer(p), gradient(p))
		p.Free(activation(p))
	}
	var out bytes.Buffer
	if err := pprof.Write(&out, p); err != nil {
		t.Fatal(err)
	}
	if path := os.Getenv("EAGERGC_TEST_PROFILE"); path != "" {
		if err := os.WriteFile(path, out.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := profile.Parse(&out)
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]int64{}
	for _, s := range got.Sample {
		sums[s.Location[1].Line[0].Function.Name] += s.Value[3]
		if s.Label["space"][0] != "device0" {
			t.Errorf("%v", s.Label)
		}
	}
	const pkg = "github.com/eagergc/eagergc/trace/formats/poolpprof_test."
	// 100 blocks of 256 MiB are exact, but for one in 10 million; 1 GiB in blocks of 10 MiB is estimated, with a
	// standard deviation of 100 MiB.
	if l, g, a := sums[pkg+"layer"], sums[pkg+"gradient"], sums[pkg+"activation"]; l < 24<<30 || l > 26<<30 || g < 400<<20 || g > 1600<<20 || a != 0 {
		t.Errorf("layers %d, gradients %d, activations %d", l, g, a)
	}
	for _, b := range held {
		p.Free(b)
	}
}

//go:noinline
func layer(p *pool.Pool) pool.Block { return alloc(p, 256<<20) }

//go:noinline
func gradient(p *pool.Pool) pool.Block { return alloc(p, 10<<20) }

//go:noinline
func activation(p *pool.Pool) pool.Block { return alloc(p, 1<<30) }

func alloc(p *pool.Pool, bytes int64) pool.Block {
	b, err := p.Alloc(bytes, 0)
	if err != nil {
		panic(err)
	}
	return b
}
