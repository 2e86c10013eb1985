package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/montanaflynn/stats"
)

// clientWays are the ways in which clients run. The way told reports bytes to the runtime.
const clientWays = "plain,memlimit:256,tick:100ms,auto,own,told,close"

// measureClients runs the clients with the patched Go. Only the way told reports bytes to it. A
// client that does not build here is left out, and the error names it.
func measureClients(out, only string, rounds int) error {
	root, err := checkout()
	if err != nil {
		return err
	}
	if out == "" {
		return errors.New("clients: want a folder (-o)")
	}
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	clients := filepath.Join(root, "cmd/clients")
	overlay, remove, err := temporary("low", clients)
	if err != nil {
		return err
	}
	defer remove()
	for _, strangers := range []bool{false, true} {
		cmd := exec.Command(filepath.Join(root, ".ci/with"), "cmd/clients", "go", "run", ".", "-o", out, "-ways", clientWays,
			"-rounds", strconv.Itoa(rounds), "-only", only, fmt.Sprintf("-strangers=%t", strangers))
		cmd.Env = append(os.Environ(), strings.TrimSpace("GOFLAGS=-overlay="+overlay+" "+os.Getenv("GOFLAGS")))
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "extmem: clients:", err)
		}
	}
	return nil
}

// clientTables writes a table of the runs in a folder. The rows are clients and the columns ways. It
// compares each run with the run of the way told in the same round.
func clientTables(folder string, stdout io.Writer) error {
	runs, names := make(map[string]map[string][][]float64), []string{} // mean MiB and processor s of each round
	for _, file := range []string{"runs.csv", "strangers.csv"} {
		text, err := os.Open(filepath.Join(folder, file))
		if errors.Is(err, os.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		rows, err := csv.NewReader(text).ReadAll()
		text.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		memory, processor := slices.Index(rows[0], "mean_mib"), slices.Index(rows[0], "cpu_s")
		if memory < 0 || processor < 0 {
			return fmt.Errorf("%s:1: want columns mean_mib and cpu_s", file)
		}
		for line, row := range rows[1:] {
			if runs[row[0]] == nil {
				runs[row[0]] = make(map[string][][]float64)
				names = append(names, row[0])
			}
			m, err := strconv.ParseFloat(row[memory], 64)
			p, failed := strconv.ParseFloat(row[processor], 64)
			if err = errors.Join(err, failed); err != nil {
				return fmt.Errorf("%s:%d: %w", file, line+2, err)
			}
			runs[row[0]][row[1]] = append(runs[row[0]][row[1]], []float64{m, p})
		}
	}
	if len(names) == 0 {
		return fmt.Errorf("%s: no runs", folder)
	}
	ways := strings.Split(clientWays, ",")
	var b strings.Builder
	fmt.Fprintf(&b, "| mean MiB; processor s | %s |\n|---|%s\n", strings.Join(ways, " | "), strings.Repeat("--:|", len(ways)))
	all := make(map[string][][]float64)
	for _, name := range names {
		fmt.Fprintf(&b, "| %s |", name)
		told := runs[name]["told"]
		for _, way := range ways {
			var ratios [][]float64
			for i, run := range runs[name][way][:min(len(runs[name][way]), len(told))] {
				ratios = append(ratios, []float64{run[0] / told[i][0], run[1] / told[i][1]})
			}
			if len(ratios) > 0 {
				m, r := medians(runs[name][way]), medians(ratios)
				all[way] = append(all[way], r)
				fmt.Fprintf(&b, " %.0f (%.2f); %.2f (%.2f)", m[0], r[0], m[1], r[1])
			}
			b.WriteString(" |")
		}
		b.WriteString("\n")
	}
	b.WriteString("| geometric mean |")
	for _, way := range ways {
		var memory, processor []float64
		for _, m := range all[way] {
			memory, processor = append(memory, m[0]), append(processor, m[1])
		}
		x, _ := stats.GeometricMean(memory) // a way without runs has no mean
		y, _ := stats.GeometricMean(processor)
		fmt.Fprintf(&b, " %.2f; %.2f |", x, y)
	}
	b.WriteString("\n")
	if err := os.WriteFile(filepath.Join(folder, "clients.md"), []byte(b.String()), 0o644); err != nil {
		return err
	}
	_, err := io.WriteString(stdout, b.String())
	return err
}

// medians returns the median of each column.
func medians(rows [][]float64) (m []float64) {
	for i := range rows[0] {
		var x []float64
		for _, row := range rows {
			x = append(x, row[i])
		}
		middle, _ := stats.Median(x) // cannot fail: there is at least one row
		m = append(m, middle)
	}
	return m
}
