package pprof_test

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"path/filepath"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/trace/formats/poolpprof"
)

// A service serves the profile, and writes one when memory runs out.
func Example() {
	p, err := pool.New(pool.Config{Sites: pool.SitesByLimit})
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	mux := http.NewServeMux()
	mux.Handle("/debug/eagergc/memory", pprof.Handler(p)) // go tool pprof http://localhost:6060/debug/eagergc/memory

	a, err := array.New[float32](p, 256<<20) // 1 GiB: far above the rate, so a sample for sure
	if err != nil {
		log.Fatal(err)
	}
	defer a.Free()
	file, err := os.Create(filepath.Join(os.TempDir(), "memory.pb.gz")) // go tool pprof -top memory.pb.gz
	if err != nil {
		log.Fatal(err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if err := pprof.Write(file, p); err != nil {
		log.Fatal(err)
	}
	for _, h := range p.Holders(1) {
		fmt.Println(h.Bytes>>20, "MiB in", h.Blocks, "block")
	}
	// Output: 1024 MiB in 1 block
}
