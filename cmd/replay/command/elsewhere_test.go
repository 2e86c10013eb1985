package command

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const elsewhere = "../../../results/2026-11-22-elsewhere/"

// The sets of programs on which pacer is judged, each a report of evaluate --trials.
var judged = []string{"recorded", "unseen", "programs", "synthetic"}

// A tableText is a table in Markdown: its rows, the head first.
type tableText [][]string

// tableIn returns the first table of a text whose head has all of these columns.
func tableIn(t *testing.T, text string, columns ...string) (rows tableText) {
	t.Helper()
	for line := range strings.Lines(text) {
		var row []string
		if cells := strings.Split(strings.TrimSpace(line), "|"); len(cells) > 2 {
			for _, c := range cells[1 : len(cells)-1] {
				row = append(row, strings.TrimSpace(c))
			}
		}
		switch {
		case rows == nil:
			if !slices.ContainsFunc(columns, func(c string) bool { return !slices.Contains(row, c) }) {
				rows = tableText{row}
			}
		case len(row) != len(rows[0]):
			return rows
		case !strings.HasPrefix(row[0], "---"):
			rows = append(rows, row)
		}
	}
	if rows == nil {
		t.Fatalf("no table with %q", columns)
	}
	return rows
}

// of returns a cell of the row that begins with a name.
func (rows tableText) of(name, column string) string {
	k := slices.Index(rows[0], column)
	for _, row := range rows {
		if row[0] == name && k >= 0 {
			return row[k]
		}
	}
	return "-"
}

// answers are what the tables of the reports say together.
func answers(t *testing.T) (figures, causes string) {
	recorded := read(t, elsewhere+"recorded.md")
	trials := tableIn(t, recorded, "trial", "J", "lost")
	gap := regexp.MustCompile(`a gap of (-?[\d.]+ %)`).FindStringSubmatch(recorded)
	if gap == nil {
		t.Fatal("recorded.md says nothing of a gap")
	}
	var f, c strings.Builder
	f.WriteString("\nOn the eleven recordings, plain. In brackets the best schedule known, which knows all that will come.\n\n| | wanted | is | at cycles of 1 and 10 ms alone |\n|---|--:|--:|--:|\n")
	for _, row := range [][4]string{
		{"J against the best known", "1.25", trials.of("plain", "J"), atMiddleCycles(t, recorded, "J")},
		{"worst program", "1.6", trials.of("plain", "worst program"), ""},
		{"delay against `cudajl`", "0.09", trials.of("plain", "delay / cudajl"), atMiddleCycles(t, recorded, "Delay / cudajl")},
		{"against `cudajl:overlap=true`", "0.3", trials.of("plain", "delay / cudajl overlapped"), atMiddleCycles(t, recorded, "Delay / cudajl overlapped")},
		{"gap between tuned and left out", "5 %", gap[1], ""},
		{"lost cells", "0", trials.of("plain", "lost") + " of " + trials.of("plain", "cells"), ""},
	} {
		fmt.Fprintf(&f, "| %s | %s | %s | %s |\n", row[0], row[1], row[2], row[3])
	}
	columns := []string{"cells", "J", "worst program", "delay / cudajl", "delay / cudajl:poll=50us", "delay / cudajl overlapped", "refusals", "lost"}
	fmt.Fprintf(&f, "\nAll sets and trials:\n\n| set | trial | %s |\n|---|---|%s\n", strings.Join(columns, " | "), strings.Repeat("--:|", len(columns)))
	kinds := []string{"price", "told", "headroom", "forecast", "ahead", "rule"}
	fmt.Fprintf(&c, "\n| set | cells | lost | %s |\n|---|%s\n", strings.Join(kinds, " | "), strings.Repeat("--:|", 2+len(kinds)))
	for _, set := range judged {
		text, err := os.ReadFile(elsewhere + set + ".md")
		if err != nil && set == "unseen" { // they are not in the repository, and may never have been run
			continue
		}
		trials, why := tableIn(t, string(text), "trial", "J", "lost"), tableIn(t, string(text), "cause", "all")
		cells, lost := 0, 0
		for _, row := range trials[1:] {
			fmt.Fprintf(&f, "| %s | %s |", set, row[0])
			for _, column := range columns {
				fmt.Fprintf(&f, " %s |", trials.of(row[0], column))
			}
			f.WriteString("\n")
			cells += wholeOf(t, trials.of(row[0], "cells"))
			lost += wholeOf(t, trials.of(row[0], "lost"))
		}
		fmt.Fprintf(&c, "| %s | %d | %d |", set, cells, lost)
		for _, kind := range kinds {
			fmt.Fprintf(&c, " %s |", why.of(kind, "all"))
		}
		c.WriteString("\n")
	}
	return f.String() + "\n", c.String() + "\n"
}

func wholeOf(t *testing.T, text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// atMiddleCycles is the mean of the cells for cycles of 1 and 10 ms in a table by limit and cycle, and of what they have in brackets.
func atMiddleCycles(t *testing.T, report, table string) string {
	_, byCell, _ := strings.Cut(report, "## "+table+" by limit and cycle")
	var logs [2]float64
	n, parts := 0.0, 0
	for _, row := range tableIn(t, byCell, "cycle")[1:] {
		if row[0] != "1ms" && row[0] != "10ms" {
			continue
		}
		for _, cell := range row[1:] {
			values := strings.Fields(strings.NewReplacer("(", "", ")", "").Replace(cell))
			for i, v := range values {
				x, err := strconv.ParseFloat(v, 64)
				if err != nil {
					t.Fatal(err)
				}
				logs[i] += math.Log(x)
			}
			n, parts = n+1, len(values)
		}
	}
	mean := fmt.Sprintf("%.3f", math.Exp(logs[0]/n))
	if parts == 2 {
		mean += fmt.Sprintf(" (%.3f)", math.Exp(logs[1]/n))
	}
	return mean
}

// What the answer to how pacer does elsewhere says, and the guide to its rule, is in the
// reports of the same folder. -update writes it anew.
func TestElsewhere(t *testing.T) {
	figures, causes := answers(t)
	for _, x := range []struct{ file, name, want string }{
		{elsewhere + "README.md", "figures", figures},
		{elsewhere + "README.md", "causes", causes},
		{"../../../gc/POLICIES.md", "causes", causes},
	} {
		block := regexp.MustCompile(`(?s)(<!-- ` + x.name + `: [^>]*-->\n).*?(<!-- end -->)`)
		text := read(t, x.file)
		if !block.MatchString(text) {
			t.Errorf("%s has no place for %s", filepath.Base(x.file), x.name)
			continue
		}
		got := block.ReplaceAllString(text, "${1}"+x.want+"${2}")
		switch {
		case got == text:
		case *update:
			if err := os.WriteFile(x.file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		default:
			t.Errorf("%s is out of date: go test ./cmd/replay -run Elsewhere -update", filepath.Base(x.file))
		}
	}
}
