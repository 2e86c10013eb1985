// Command fleet-beam asks a fleet of recordings on Apache Beam: see replay fleet. Flags
// are its own, and Beam's: --runner=prism, flink, dataflow and what these need.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/gcs"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/local"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/s3"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx"

	"github.com/eagergc/eagergc/sim/fleet"
	fleetbeam "github.com/eagergc/eagergc/sim/fleet/beam"
	"github.com/eagergc/eagergc/trace/spill"
)

func main() {
	var o fleetbeam.Options
	flag.StringVar(&o.Input, "input", "", "folder or pattern of recordings: gs://, s3:// or local")
	flag.StringVar(&o.Output, "output", "", "folder for fleet.json")
	flag.StringVar(&o.Cache, "cache", "", "folder in which to keep what is known of each recording (default: cache in the output; none: nothing is kept)")
	flag.Int64Var(&o.Large, "large", 0, "bytes from which a file is cut into parts (default 256 MiB)")
	plan := flag.String("plan", "", "what is asked: JSON, a file with it, or a fleet.json")
	flag.Parse()
	spill.UseFiles(true)
	beam.Init()
	if err := run(context.Background(), &o, *plan); err != nil {
		fmt.Fprintln(os.Stderr, "fleet-beam:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o *fleetbeam.Options, plan string) (err error) {
	if o.Input == "" || o.Output == "" || plan == "" {
		return fmt.Errorf("want --input, --output and --plan (replay fleet gives them)")
	}
	if o.Plan, err = readPlan(plan); err != nil {
		return err
	}
	if _, err := fleet.NewMapper(o.Plan); err != nil {
		return err
	}
	switch o.Cache {
	case "":
		o.Cache = strings.TrimSuffix(o.Output, "/") + "/cache"
	case "none":
		o.Cache = ""
	}
	p, s := beam.NewPipelineWithRoot()
	fleetbeam.Build(s, *o)
	return beamx.Run(ctx, p)
}

func readPlan(text string) (p fleet.Plan, err error) {
	data := []byte(text)
	if !strings.HasPrefix(text, "{") {
		if data, err = os.ReadFile(text); err != nil {
			return p, err
		}
	}
	if strings.HasPrefix(string(data), fleet.Magic) {
		a, err := fleet.Decode(strings.NewReader(string(data)))
		if err != nil {
			return p, err
		}
		return a.Plan, nil
	}
	return p, json.Unmarshal(data, &p)
}
