package command

import (
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../../.."

// filesOf returns the paths of all files of the repository whose names end in suffix.
func filesOf(t *testing.T, suffix string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git") {
			return fs.SkipDir
		}
		if err == nil && strings.HasSuffix(name, suffix) {
			all = append(all, name)
		}
		return err
	})
	if err != nil || len(all) < 10 {
		t.Fatalf("%d files, %v", len(all), err)
	}
	return all
}

var (
	markdownLink = regexp.MustCompile(`\]\(([^)\s]*)\)`)
	heading      = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInAnchor  = regexp.MustCompile(`[^a-z0-9 _-]`)
	commandUse   = regexp.MustCompile("(?:`|cmd/|\\b(?:by|for|run|see|with) )replay ([a-z]+)")
	// A path is the name of a file that begins with a folder of the repository, or the name of a document.
	pathUse = regexp.MustCompile(`(?:^|[\s(\x60"])((?:(?:gc|pool|trace|sim|cmd|pressure|notebooks|results|\.ci)/[\w./-]*[a-z])|\w[\w./-]*\.md)(?:$|[\s)\x60",.:;])`)
	// A link of a comment, which has no links in its indented lines, is a name with a dot, or one of a type, function or variable with an upper-case letter.
	indented = regexp.MustCompile(`(?m)^[ \t].*$`)
	docLink  = regexp.MustCompile(`\[\*?((?:[\w./]+\.)?\w+\.\w+|[A-Z]\w+)\](?:[^:(\[\w.]|$)`)
)

// anchors returns the anchors that GitHub gives the headings of a document.
func anchors(text string) map[string]bool {
	all := map[string]bool{"": true}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		all[strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return all
}

// Links of documents lead to files and headings, and the commands that documents name exist.
func TestDocumentsNameWhatThereIs(t *testing.T) {
	for _, file := range filesOf(t, ".md") {
		text := read(t, file)
		old := strings.Contains(file, "/results/2") // it tells of the commit at which it was made
		for _, m := range markdownLink.FindAllStringSubmatch(codeText.ReplaceAllString(text, ""), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			to := filepath.Join(filepath.Dir(file), target)
			if target == "" {
				to = file
			}
			if old && strings.HasSuffix(to, "_test.go") {
				continue
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: %v", file, err)
			} else if strings.HasSuffix(to, ".md") && !anchors(read(t, to))[anchor] {
				t.Errorf("%s: %s has no heading %q", file, to, anchor)
			}
		}
		if !old {
			checkUses(t, file, text)
		}
	}
}

// checkUses fails for commands and paths of a text that do not exist.
func checkUses(t *testing.T, file, text string) {
	t.Helper()
	for _, m := range commandUse.FindAllStringSubmatch(text, -1) {
		if c, _, err := newRoot().Find(m[1:]); (err != nil || c == newRoot()) && m[1] != "help" {
			t.Errorf("%s: there is no command replay %s", file, m[1])
		}
	}
	for _, m := range pathUse.FindAllStringSubmatch(text, -1) {
		if !exists(m[1], root, filepath.Dir(file), filepath.Dir(filepath.Dir(file))) {
			t.Errorf("%s: there is no %s", file, m[1])
		}
	}
}

// exists reports whether a path, or a path and a name of that package, is below one of the folders.
func exists(name string, folders ...string) bool {
	whole, _, _ := strings.Cut(path.Base(name), ".")
	for _, dir := range folders {
		for _, n := range []string{name, path.Join(path.Dir(name), whole)} {
			if _, err := os.Stat(filepath.Join(dir, n)); err == nil {
				return true
			}
		}
	}
	return false
}

// Links of comments lead to declared names, as go doc finds them, and comments name files and commands that exist.
func TestCommentsNameWhatThereIs(t *testing.T) {
	set := token.NewFileSet()
	folders, parsers := map[string][]*ast.File{}, map[string]*comment.Parser{} // by import path
	for _, name := range filesOf(t, ".go") {
		f, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		of := module + strings.TrimPrefix(filepath.ToSlash(filepath.Dir(name)), root+"/")
		folders[of] = append(folders[of], f)
	}
	for of, files := range folders {
		own := slices.DeleteFunc(slices.Clone(files), func(f *ast.File) bool { return strings.HasSuffix(f.Name.Name, "_test") })
		p, err := doc.NewFromFiles(set, own, of, doc.AllDecls|doc.PreserveAST)
		if err != nil {
			t.Fatal(err)
		}
		parsers[of] = p.Parser()
	}
	for of, files := range folders {
		for _, f := range files {
			for _, c := range f.Comments {
				where, text := set.Position(c.Pos()).String(), c.Text()
				checkUses(t, strings.TrimSuffix(where, ":1:1"), text)
				links := comment.Printer{DocLinkURL: func(l *comment.DocLink) string {
					if p := parsers[l.ImportPath]; p != nil && l.Name != "" && !p.LookupSym(l.Recv, l.Name) {
						t.Errorf("%s: nothing is called [%s.%s]", where, l.ImportPath, l.Name)
					}
					return ""
				}}
				html := links.HTML(parsers[of].Parse(indented.ReplaceAllString(text, "")))
				if m := docLink.FindSubmatch(html); m != nil && !strings.HasSuffix(set.Position(c.Pos()).Filename, "_test.go") {
					t.Errorf("%s: nothing is called [%s]", where, m[1])
				}
			}
		}
	}
}
