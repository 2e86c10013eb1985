// Embed is a server of text embeddings. Hugot runs an encoder with random weights on the backend
// of GoMLX that $BACKEND names: simplego, xla:/path/of/a/plugin.so, or one of these after eager:.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/gomlx/go-xla/pkg/pjrt"
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/backends/xla"
	"github.com/knights-analytics/hugot"
	"github.com/knights-analytics/hugot/options"
)

// Hugot pads texts to these sizes, so XLA compiles four programs.
var batches, sequences = []int{8, 32}, []int{32, longest}

var prefix string // of $BACKEND, set by the linker

// Hugot's session for XLA needs a tokenizer in Rust, so its session for the backend go gets the
// backend.
func init() {
	backends.Register("simplego", simplego.New)
	backends.Register("go", func(string) (backends.Backend, error) {
		return backends.NewWithConfig(prefix + os.Getenv("BACKEND"))
	})
	if share, err := strconv.ParseFloat(os.Getenv("MEMORY_FRACTION"), 32); err == nil {
		backends.Register("xla", func(config string) (backends.Backend, error) {
			return xla.NewWithOptions(config, pjrt.NamedValuesMap{"memory_fraction": float32(share)})
		})
	}
}

func main() {
	address := flag.String("addr", "127.0.0.1:8080", "to listen at")
	dir := flag.String("model", "", "folder for the model")
	flag.Parse()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	go func() {
		<-stop
		os.Exit(0)
	}()
	handler, err := open(*dir, encoder{layers: 6, hidden: 384, heads: 12, inner: 1536, words: 8000})
	if err == nil {
		err = http.ListenAndServe(*address, handler)
	}
	log.Fatal(err)
}

// open writes a model into a folder, loads it, compiles it for all sizes, and returns its handler.
func open(dir string, e encoder) (http.Handler, error) {
	if err := e.write(dir); err != nil {
		return nil, err
	}
	session, err := hugot.NewGoSession(options.WithGoMLXBatchBuckets(batches), options.WithGoMLXSequenceBuckets(sequences))
	if err != nil {
		return nil, err
	}
	pipeline, err := hugot.NewPipeline(session, hugot.FeatureExtractionConfig{ModelPath: dir, Name: "embed"})
	if err != nil {
		return nil, err
	}
	for _, texts := range batches {
		for _, words := range sequences {
			if _, err := pipeline.RunPipeline(slices.Repeat([]string{strings.Repeat("w4 ", words-2)}, texts)); err != nil {
				return nil, err
			}
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /memory", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(memory(pipeline.Model.GoMLXModel.Backend))
	})
	mux.HandleFunc("POST /embed", func(w http.ResponseWriter, r *http.Request) {
		var request struct{ Texts []string }
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil || len(request.Texts) == 0 {
			http.Error(w, fmt.Sprintf("no texts: %v", err), http.StatusBadRequest)
			return
		}
		result, err := pipeline.RunPipeline(request.Texts) // at once with others
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(result)
	})
	return mux, nil
}
