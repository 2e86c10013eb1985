//go:build ignore

// Picture draws resident memory over time from the timeline of a client: go run picture.go query
package main

import (
	"encoding/csv"
	"log"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/sim/chart"
)

var ways = []string{"plain", "memlimit:512", "auto", "gauge", "own", "close"}

func main() {
	client := os.Args[1]
	file, err := os.Open(client + "-timeline.csv")
	if err != nil {
		log.Fatal(err)
	}
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		log.Fatal(err)
	}
	curves := make([]chart.Curve, len(ways))
	for i, w := range ways {
		curves[i].Name = w
	}
	for _, row := range rows[1:] {
		i := slices.Index(ways, row[1])
		ms, err1 := strconv.ParseInt(row[2], 10, 64)
		mib, err2 := strconv.ParseInt(row[3], 10, 64)
		if err1 != nil || err2 != nil {
			log.Fatal(err1, err2)
		}
		if i >= 0 {
			curves[i].Levels = append(curves[i].Levels, sim.Level{At: time.Duration(ms) * time.Millisecond, Live: mib << 20})
		}
	}
	out, err := os.Create(client + ".svg")
	if err != nil {
		log.Fatal(err)
	}
	c := chart.Curves("Resident memory of "+client+", in six ways", "two idle cores; the first of three rounds", curves)
	if err := c.Write(out, "svg"); err != nil {
		log.Fatal(err)
	}
	if err := out.Close(); err != nil {
		log.Fatal(err)
	}
}
