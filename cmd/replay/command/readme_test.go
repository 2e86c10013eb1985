package command

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	readme    = "../../../README.md"
	embedding = "../../../gc/EMBEDDING.md"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blocks returns the code blocks of a language in a file.
func blocks(t *testing.T, file, language string) (all []string) {
	t.Helper()
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```\n").FindAllStringSubmatch(read(t, file), -1) {
		all = append(all, m[1])
	}
	return all
}

// The table in the README is the output of compare. -update writes it.
func TestReadmeTable(t *testing.T) {
	if testing.Short() {
		t.Skip("replays the default comparison")
	}
	want := replay(t, "compare", "--policies", "never,cudajl:poll=50us,sqrt,pacer,optimum-overlap", "--cycle", "10ms", "-o", "")
	want, _, _ = strings.Cut(want[strings.Index(want, "Time lost"):], "\n\n")
	want += "\n"
	got := blocks(t, readme, "text")[0]
	switch {
	case got == want:
	case *update:
		text := strings.Replace(read(t, readme), "```text\n"+got, "```text\n"+want, 1)
		if err := os.WriteFile(readme, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("README.md has\n%s\ncompare prints\n%s\n(go test ./cmd/replay/command -run Readme -update writes it)", got, want)
	}
}

// Every command in the README and the guide exists and takes its flags. The one that checks a
// clone is the one of CI.
func TestReadmeCommands(t *testing.T) {
	n := 0
	for line := range strings.Lines(strings.Join(append(blocks(t, readme, "sh"), blocks(t, embedding, "sh")...), "")) {
		args, ok := strings.CutPrefix(strings.TrimSpace(line), "go run ./cmd/replay ")
		if !ok {
			continue
		}
		n++
		cmd, rest, err := newRoot().Find(strings.Fields(args))
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err == nil {
			err = cmd.ValidateArgs(cmd.Flags().Args())
		}
		if err != nil {
			t.Errorf("%s%v", line, err)
		}
	}
	const check = "go test work"
	if n < 4 || !strings.Contains(read(t, readme), check) || !strings.Contains(read(t, "../../../.ci/run"), "\n"+check+"\n") {
		t.Errorf("%d commands, or %q is not in README.md and .ci/run", n, check)
	}
}

// The first lines of shell in the README make a module beside a checkout build, with the import or a policy of its own.
func TestReadmeFirstLines(t *testing.T) {
	checkout, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(checkout, filepath.Join(dir, "eagergc")); err != nil {
		t.Skip(err)
	}
	first, second, _ := strings.Cut(blocks(t, readme, "sh")[0], "\n")
	for name, c := range map[string]struct{ code, then string }{
		"app":    {"import _ \"" + module + "gc/auto\"\n\nfunc main() {}\n", second},
		"policy": {"import \"" + module + "cmd/replay/command\"\n\nfunc main() { command.Main() }\n", "go mod edit -go=1.26"}, // tidy wants more than is here without a network
	} {
		app := filepath.Join(dir, name)
		if err := errors.Join(os.Mkdir(app, 0o755), os.WriteFile(filepath.Join(app, "main.go"), []byte("package main\n\n"+c.code), 0o666),
			os.WriteFile(filepath.Join(app, "go.mod"), []byte("module example.com/app\n\ngo 1.24\n"), 0o666)); err != nil {
			t.Fatal(err)
		}
		run := exec.Command("sh", "-ec", first+"\n"+c.then+"\ngo list -mod=mod -deps .")
		run.Dir = app
		run.Env = append(os.Environ(), "GOWORK=off", "GOPROXY=off", "GONOSUMDB=*", "GOFLAGS=")
		if out, err := run.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// The Go code of the README and the guide is part of an Example, which compiles and mostly runs.
// The README has the import, five lines, and ten for a GPU.
func TestReadmeSnippets(t *testing.T) {
	var examples strings.Builder
	err := filepath.WalkDir("../../..", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(filepath.Base(path), "example") && strings.HasSuffix(path, "_test.go") {
			examples.WriteString(unindent(read(t, path)))
		}
		return err
	})
	short := blocks(t, readme, "go")
	if err != nil || len(short) != 3 || strings.Count(short[0], "\n") > 1 || strings.Count(short[1], "\n") > 5 || strings.Count(short[2], "\n") > 10 {
		t.Errorf("README.md shows %q; want a line, a piece of five lines and one of ten: %v", short, err)
	}
	for _, code := range append(short, blocks(t, embedding, "go")...) {
		if strings.HasPrefix(code, "import _ ") {
			code = strings.TrimPrefix(strings.TrimSpace(code), "import _ ") // a line of an Example's imports
		}
		if !strings.Contains(examples.String(), unindent(code)) {
			t.Errorf("no Example has\n%s", code)
		}
	}
}

func unindent(code string) string { return regexp.MustCompile(`(?m)^\t+`).ReplaceAllString(code, "") }

var (
	codeText     = regexp.MustCompile("(?s)```.*?```|`[^`]*`")
	linkTarget   = regexp.MustCompile(`\]\([^)]*\)`)
	figureText   = regexp.MustCompile(`\d[\d,]*(\.\d+)?`)
	resultFolder = regexp.MustCompile(`\d{4}-\d\d-\d\d-[a-z0-9-]+`)
)

// Figures in prose that are not measured: parts of names, assumptions, settings. Each stands
// alone.
var stated = []string{
	"80 GiB of dead buffers behind 2 MiB of Go heap",       // README: an example
	"5 % of the collector's own time", "1.5 times what is", // README, notebook: definitions
	"needs Go 1.24; the commands need Go 1.26", "NVIDIA H200", "CUDA.jl 5.4", "GPT-2", // names
	"where a collection takes 10 ms", "Apache-2.0", // README: a setting, a licence
	"more than 1 + share", "1 + share, less 1", // notebook: a formula
}

// number returns a figure in the form in which figures are compared: 1,000 is 1000.
func number(s string) string { return strings.ReplaceAll(strings.TrimRight(s, ","), ",", "") }

// checkFigures fails for numbers of a text in Markdown that are in no README and no text file of
// the folders of results/. Numbers in the text's code, in the targets of its links and in stated
// facts do not count.
func checkFigures(t *testing.T, where, text string, folders []string) {
	t.Helper()
	known := map[string]bool{}
	for _, f := range folders {
		files, _ := filepath.Glob(filepath.Join("../../../results", f, "*.md"))
		more, _ := filepath.Glob(filepath.Join("../../../results", f, "*.txt"))
		if len(files)+len(more) == 0 {
			t.Errorf("results/%s has no text", f)
		}
		for _, name := range append(files, more...) {
			for _, n := range figureText.FindAllString(read(t, name), -1) {
				known[number(n)] = true
			}
		}
	}
	text = linkTarget.ReplaceAllString(codeText.ReplaceAllString(text, ""), "]")
	text = strings.Join(strings.Fields(text), " ")
	for _, s := range stated {
		text = strings.ReplaceAll(text, s, "")
	}
	for _, n := range figureText.FindAllString(text, -1) {
		if !known[number(n)] {
			t.Errorf("%s: none of %q has %s of\n%s", where, folders, n, text)
		}
	}
}

// Every figure in the prose of the README is in a folder of results/ that its paragraph links
// to. Every figure in the index of the results is in the folder of its row.
func TestReadmeFigures(t *testing.T) {
	text := codeText.ReplaceAllString(read(t, readme), "")
	text = regexp.MustCompile(`(?s)<!-- clients: .*?<!-- end -->`).ReplaceAllString(text, "") // which cmd/clients makes of its runs
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		checkFigures(t, "README.md", paragraph, resultFolder.FindAllString(paragraph, -1))
	}
	rows := 0
	for line := range strings.Lines(read(t, "../../../results/README.md")) {
		if folders := resultFolder.FindAllString(line, -1); len(folders) > 0 {
			rows++
			checkFigures(t, "results/README.md", strings.Split(line, "|")[2], folders)
		}
	}
	if dirs, err := filepath.Glob("../../../results/*-*-*-*"); err != nil || rows != len(dirs) {
		t.Errorf("%d rows for %d folders, %v", rows, len(dirs), err)
	}
}

// Every figure in the texts of the notebooks is in a folder of results/ that the notebook loads.
func TestNotebookFigures(t *testing.T) {
	files, err := filepath.Glob("../../../notebooks/*.ipynb")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d notebooks, %v", len(files), err)
	}
	for _, name := range files {
		var book struct {
			Cells []struct {
				Type   string   `json:"cell_type"`
				Source []string `json:"source"`
			} `json:"cells"`
		}
		if err := json.Unmarshal([]byte(read(t, name)), &book); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var folders []string
		for _, cell := range book.Cells {
			folders = append(folders, resultFolder.FindAllString(strings.Join(cell.Source, ""), -1)...)
		}
		slices.Sort(folders)
		for _, cell := range book.Cells {
			if cell.Type == "markdown" {
				checkFigures(t, filepath.Base(name), strings.Join(cell.Source, ""), slices.Compact(folders))
			}
		}
	}
}

// Every claim of the artefact has its figure in the file that makes it, a step that runs and a pattern that can be read.
func TestArtefact(t *testing.T) {
	text := read(t, "../../../results/ARTEFACT.md")
	steps, claims := 0, 0
	for line := range strings.Lines(text) {
		row := regexp.MustCompile(`(?:\\\||[^|])+`).FindAllString(strings.TrimSpace(line), -1)
		for i := range row {
			row[i] = strings.Trim(strings.TrimSpace(row[i]), "`")
		}
		if !strings.HasPrefix(line, "| ") || len(row) < 4 {
			continue
		}
		if !strings.Contains(row[1], ".md") {
			steps++
			continue
		}
		claims++
		if file := read(t, "../../../"+row[1]); !strings.Contains(strings.ReplaceAll(file, "`", ""), strings.ReplaceAll(row[2], "`", "")) {
			t.Errorf("%s has no %q: %s", row[1], row[2], line)
		}
		if len(row) == 6 {
			if _, err := regexp.Compile(strings.ReplaceAll(row[5], `\|`, "|")); err != nil || !strings.Contains(text, "\n| "+row[4]+" | ") {
				t.Errorf("no step %q, or %v: %s", row[4], err, line)
			}
		}
	}
	if steps < 9 || claims < 25 {
		t.Errorf("%d steps and %d claims", steps, claims)
	}
}
