package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/eagergc/eagergc/cmd/replay/chart"
	"github.com/eagergc/eagergc/sim"
)

// draw draws resident memory over time, a picture for each client of timeline.csv.
func draw(dir string) error {
	rows, err := readCSV(filepath.Join(dir, "timeline.csv"))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, client := range pictured {
		curves := make([]chart.Curve, len(drawn))
		for i, w := range drawn {
			curves[i].Name = wayTitles[w]
		}
		for line, row := range rows[1:] {
			i := slices.Index(drawn, row[1])
			if row[0] != client || i < 0 {
				continue
			}
			ms, err1 := strconv.ParseInt(row[2], 10, 64)
			mib, err2 := strconv.ParseInt(row[3], 10, 64)
			if err1 != nil || err2 != nil {
				return fmt.Errorf("timeline.csv:%d: want two numbers, got %q", line+2, row[2:])
			}
			curves[i].Levels = append(curves[i].Levels, sim.Level{At: time.Duration(ms) * time.Millisecond, Live: mib << 20})
		}
		curves = slices.DeleteFunc(curves, func(c chart.Curve) bool { return c.Levels == nil })
		if len(curves) == 0 {
			continue
		}
		if err := drawOne(filepath.Join(dir, client+".svg"), client, curves); err != nil {
			return err
		}
	}
	return nil
}

func drawOne(name, client string, curves []chart.Curve) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	err = chart.Curves("Resident memory of "+clientTitles[client], "two cores; the first round", curves).Write(file, "svg")
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}
