package command

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	codeText     = regexp.MustCompile("(?s)```.*?```|`[^`]*`")
	linkTarget   = regexp.MustCompile(`\]\([^)]*\)`)
	figureText   = regexp.MustCompile(`\d[\d,]*(\.\d+)?`)
	resultFolder = regexp.MustCompile(`\d{4}-\d\d-\d\d-[a-z0-9-]+`)
)

// Figures in prose that nobody measured: what a name has in it, what a reader is
// asked to imagine, what was set. Each stands for itself alone.
var stated = []string{
	"80 GiB of dead buffers behind 2 MiB of Go heap",       // README: an example
	"5 % of the collector's own time", "1.5 times what is", // README, notebook: definitions
	"Go 1.26 is all", "NVIDIA H200", "CUDA.jl 5.4", "GPT-2", // names
	"where a collection takes 10 ms", "Apache-2.0", // README: a setting, a licence
	"more than 1 + share", "1 + share, less 1", // notebook: a formula
}

// figures returns the numbers of a text in Markdown, without those in code, in the
// targets of links and in stated facts.
func figures(text string) []string {
	text = linkTarget.ReplaceAllString(codeText.ReplaceAllString(text, ""), "]")
	text = strings.Join(strings.Fields(text), " ")
	for _, s := range stated {
		text = strings.ReplaceAll(text, s, "")
	}
	var all []string
	for _, at := range figureText.FindAllStringIndex(text, -1) {
		all = append(all, number(text[at[0]:at[1]]))
	}
	return all
}

// number is a figure as it is compared: 1,000 is 1000.
func number(s string) string {
	return strings.ReplaceAll(strings.TrimRight(s, ","), ",", "")
}

// missing returns those figures of text that stand in no README and no text
// file of the folders of results/, code and targets included.
func missing(t *testing.T, text string, folders []string) []string {
	t.Helper()
	known := map[string]bool{}
	for _, f := range folders {
		var files []string
		for _, pattern := range []string{"*.md", "*.txt"} {
			found, err := filepath.Glob(filepath.Join("../../../results", f, pattern))
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, found...)
		}
		if len(files) == 0 {
			t.Errorf("results/%s has no text", f)
		}
		for _, name := range files {
			for _, n := range figureText.FindAllString(read(t, name), -1) {
				known[number(n)] = true
			}
		}
	}
	return slices.DeleteFunc(figures(text), func(n string) bool { return known[n] })
}

// Every figure in the prose of the README is in a folder of results/ that its
// paragraph links to.
func TestReadmeFigures(t *testing.T) {
	text := regexp.MustCompile(`(?s)<!-- clients: .*?<!-- end -->`).ReplaceAllString(prose(t, readme), "") // which cmd/clients makes of its runs
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		if m := missing(t, paragraph, resultFolder.FindAllString(paragraph, -1)); len(m) > 0 {
			t.Errorf("no results/ folder that the paragraph links to has %q:\n%s", m, paragraph)
		}
	}
}

// Every figure in the index of the results is in the folder that its row names.
func TestResultsIndex(t *testing.T) {
	rows := 0
	for line := range strings.Lines(read(t, "../../../results/README.md")) {
		folders := resultFolder.FindAllString(line, -1)
		if len(folders) == 0 {
			continue
		}
		rows++
		if m := missing(t, strings.Split(line, "|")[2], folders); len(m) > 0 {
			t.Errorf("results/%s lacks %q of\n%s", folders[0], m, line)
		}
	}
	dirs, err := filepath.Glob("../../../results/*-*-*-*")
	if err != nil || rows != len(dirs) {
		t.Errorf("%d rows for %d folders, %v", rows, len(dirs), err)
	}
}

// Every figure in the texts of the notebooks is in a folder of results/ that the
// notebook loads.
func TestNotebookFigures(t *testing.T) {
	files, err := filepath.Glob("../../../notebooks/*.ipynb")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d notebooks, %v", len(files), err)
	}
	for _, name := range files {
		text := read(t, name)
		var book struct {
			Cells []struct {
				Type   string   `json:"cell_type"`
				Source []string `json:"source"`
			} `json:"cells"`
		}
		if err := json.Unmarshal([]byte(text), &book); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var folders []string
		for _, cell := range book.Cells {
			folders = append(folders, resultFolder.FindAllString(strings.Join(cell.Source, ""), -1)...)
		}
		for _, cell := range book.Cells {
			source := strings.Join(cell.Source, "")
			if cell.Type != "markdown" {
				continue
			}
			if m := missing(t, source, folders); len(m) > 0 {
				t.Errorf("%s: none of %q has %q of\n%s", filepath.Base(name), folders, m, source)
			}
		}
	}
}

// Every claim of the artefact has its figure in the file that makes it, a step that runs and a pattern that can be read.
func TestArtefact(t *testing.T) {
	text := read(t, "../../../results/ARTEFACT.md")
	steps, claims := 0, 0
	cells := regexp.MustCompile(`(?:\\\||[^|])+`)
	for line := range strings.Lines(text) {
		row := cells.FindAllString(strings.TrimSpace(line), -1)
		for i := range row {
			row[i] = strings.Trim(strings.TrimSpace(row[i]), "`")
		}
		switch {
		case !strings.HasPrefix(line, "| ") || len(row) < 4:
		case !strings.Contains(row[1], ".md"):
			steps++
		default:
			claims++
			if file := read(t, "../../../"+row[1]); !strings.Contains(strings.ReplaceAll(file, "`", ""), strings.ReplaceAll(row[2], "`", "")) {
				t.Errorf("%s has no %q: %s", row[1], row[2], line)
			}
		}
		if len(row) == 6 && strings.Contains(row[1], ".md") {
			if _, err := regexp.Compile(strings.ReplaceAll(row[5], `\|`, "|")); err != nil || !strings.Contains(text, "\n| "+row[4]+" | ") {
				t.Errorf("no step %q, or %v: %s", row[4], err, line)
			}
		}
	}
	if steps < 9 || claims < 25 {
		t.Errorf("%d steps and %d claims", steps, claims)
	}
}
