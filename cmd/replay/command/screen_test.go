package command

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

func screenOf(width int, print func(*printer)) string {
	var b bytes.Buffer
	print(&printer{w: &b, width: width})
	return b.String()
}

// A table that is wider than the screen is printed in parts, each with its first
// column; nothing is lost.
func TestTablesFitTheScreen(t *testing.T) {
	head, row := []string{"policy"}, []string{"optimum-overlap"}
	for i := range 12 {
		head = append(head, strings.Repeat("h", i+3), left)
		row = append(row, strings.Repeat("v", i+2), left+"1+2")
	}
	wide := table{head, row}
	text := screenOf(80, func(p *printer) { wide.print(p) })
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	for _, cell := range append(head, row...) {
		if !strings.Contains(text, strings.TrimPrefix(cell, left)) {
			t.Errorf("%q is lost", cell)
		}
	}
	if n := strings.Count(text, "optimum-overlap"); n < 2 {
		t.Errorf("%d parts", n)
	}
	if got, want := screenOf(0, func(p *printer) { wide.print(p) }), 2; strings.Count(got, "\n") != want {
		t.Errorf("without a screen there are %d lines", strings.Count(got, "\n"))
	}
}

func TestColourIsForTerminals(t *testing.T) {
	plain := screenOf(80, func(p *printer) { table{{"policy", "lost"}, {best + "pacer", "1%"}}.print(p) })
	if strings.Contains(plain, "\x1b") || strings.Contains(plain, best) {
		t.Errorf("%q", plain)
	}
	var b bytes.Buffer
	table{{"policy", "lost"}, {best + "pacer", "1%"}}.print(&printer{w: &b, width: 80, colour: true})
	if !strings.Contains(b.String(), "\x1b[1;32m") {
		t.Errorf("%q", &b)
	}
}

func TestNearest(t *testing.T) {
	for word, want := range map[string]string{"jason": "json", "tabel": "table", "--": ""} {
		if got := nearest(word, []string{"table", "json", "csv"}); got != want {
			t.Errorf("nearest(%q) = %q, want %q", word, got, want)
		}
	}
}
