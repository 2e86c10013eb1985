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
	moduleName   = regexp.MustCompile(`[\w./-]+`)
)

// Figures in prose that nobody measured: what a name has in it, what a reader is
// asked to imagine, what was set. Each stands for itself alone.
var stated = []string{
	"80 GiB of dead buffers behind 2 MiB of Go heap",              // README: an example
	"A limit of 1.25x is a quarter more",                          // README: a definition
	"0.05 x collector time",                                       // the objective of a replay
	"50 steps with a sequence length drawn per step",              // notebook 01: trace/samples
	"recorded on one H200", "NVIDIA H200", "CUDA.jl 5.4", "GPT-2", // names
	"under a limit of 1.5 times the peak", // notebook 01: what its code asks for
}

// figures returns the numbers of a text in Markdown, without those in code, in the
// targets of links and in what is stated.
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
// paragraph links to. Its versions are those of go.mod.
func TestReadmeFigures(t *testing.T) {
	text, dependencies, ok := strings.Cut(prose(t, readme), "\n## Dependencies\n")
	if !ok {
		t.Fatal("README.md has no section on dependencies")
	}
	mod := read(t, "../../../go.mod")
	text = strings.Replace(text, "Go "+regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(mod)[1]+" is", "", 1)
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		if m := missing(t, paragraph, resultFolder.FindAllString(paragraph, -1)); len(m) > 0 {
			t.Errorf("no results/ folder that the paragraph links to has %q:\n%s", m, paragraph)
		}
	}
	versions := 0
	for line := range strings.Lines(dependencies) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || strings.Contains(line, "uPlot") {
			continue
		}
		names := strings.Join(codeText.FindAllString(cells[1], -1), " ")
		for _, version := range regexp.MustCompile(`\d[\d.-]*\d`).FindAllString(cells[2], -1) {
			versions++
			if !required(mod, moduleName.FindAllString(names, -1), version) {
				t.Errorf("go.mod requires none of %s at %s", names, version)
			}
		}
	}
	if versions < 10 {
		t.Errorf("found %d versions", versions)
	}
}

// required reports whether go.mod requires a module of one of these names at the
// version, where 2026-09 is a commit of that month.
func required(mod string, names []string, version string) bool {
	for line := range strings.Lines(mod) {
		f := strings.Fields(strings.TrimPrefix(line, "require "))
		if len(f) < 2 || strings.Contains(line, "// indirect") {
			continue
		}
		path := regexp.MustCompile(`/v\d+$`).ReplaceAllString(f[0], "")
		named := slices.ContainsFunc(names, func(n string) bool { return path == n || strings.HasSuffix(path, "/"+n) })
		dated := strings.Contains(version, "-") && strings.Contains(f[1], "-"+strings.ReplaceAll(version, "-", ""))
		if named && (dated || strings.HasPrefix(f[1]+".", "v"+version+".")) {
			return true
		}
	}
	return false
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
	if err != nil || len(files) < 6 {
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
