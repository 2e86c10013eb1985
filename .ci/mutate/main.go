// Command mutate changes the project's code in small ways, one at a time, and
// asks whether its tests notice. It draws a sample of changes by a seed, so that a
// run can be repeated, and leaves the files as they are (go test -overlay).
//
//	go run ./.ci/mutate -n 20 ./gc ./pool ./trace/... ./sim
//
// A change counts as killed if the tests of its package (-short) fail, or do not
// end. It prints a line for each change, and the score of each package.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

var (
	most    = flag.Int("n", 20, "changes in each pattern of packages")
	seed    = flag.Uint64("seed", 1, "of the sample")
	skip    = flag.String("skip", "", "tests to leave out, as go test -skip")
	jobs    = flag.Int("j", 1, "changes that are tried at the same time")
	longest = flag.Duration("for", 20*time.Minute, "time for all")
	timeout = flag.Duration("timeout", 2*time.Minute, "time for the tests of one change")
)

// A change replaces the bytes of a file from one offset to another.
type change struct {
	dir, file string
	line      int
	from, to  int
	old, new  string
}

func main() {
	flag.Parse()
	if err := run(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(patterns []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), *longest)
	defer cancel()
	for _, pattern := range patterns {
		changes, err := collect(pattern)
		if err != nil {
			return err
		}
		killed, lived := 0, 0
		order := rand.New(rand.NewPCG(*seed, uint64(len(changes)))).Perm(len(changes))
		for len(order) > 0 && killed+lived < *most && ctx.Err() == nil {
			now := order[:min(len(order), *jobs, *most-killed-lived)]
			order = order[len(now):]
			for i, r := range tryAll(ctx, changes, now) {
				c := changes[now[i]]
				switch r.text {
				case "killed":
					killed++
				case "LIVED":
					lived++
				}
				fmt.Printf("%-7s %s:%d: %q -> %q (%.0f s)\n", r.text, c.file, c.line, c.old, c.new, r.took.Seconds())
			}
		}
		fmt.Printf("score   %s: %d of %d killed, drawn with seed %d from %d changes\n", pattern, killed, killed+lived, *seed, len(changes))
	}
	return nil
}

type result struct {
	text string
	took time.Duration
}

// tryAll tries some changes side by side.
func tryAll(ctx context.Context, changes []change, which []int) []result {
	results := make([]result, len(which))
	var all sync.WaitGroup
	for i, at := range which {
		all.Go(func() {
			began := time.Now()
			text, err := try(ctx, changes[at])
			if err != nil {
				text = err.Error()
			}
			if ctx.Err() != nil {
				text = "no time"
			}
			results[i] = result{text, time.Since(began)}
		})
	}
	all.Wait()
	return results
}

// collect returns the changes of all packages of a pattern.
func collect(pattern string) ([]change, error) {
	list := exec.Command("go", "list", "-f", "{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}\n{{end}}", pattern)
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, err
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	var all []change
	for _, path := range strings.Fields(string(out)) {
		name, err := filepath.Rel(here, path)
		if err != nil {
			return nil, err
		}
		changes, err := ofFile(name)
		if err != nil {
			return nil, err
		}
		all = append(all, changes...)
	}
	return all, nil
}

// swaps are the operators that are put in another's place.
var swaps = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.ADD: token.SUB, token.SUB: token.ADD,
	token.MUL: token.QUO, token.LAND: token.LOR, token.LOR: token.LAND,
}

// ofFile returns the changes of a file: another operator, a condition that is
// always or never true, a statement that is left out.
func ofFile(name string) ([]change, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var all []change
	add := func(from, to token.Pos, new string) {
		a, b := files.Position(from), files.Position(to)
		all = append(all, change{filepath.Dir(name), name, a.Line, a.Offset, b.Offset, string(text[a.Offset:b.Offset]), new})
	}
	statements := func(list []ast.Stmt) {
		for _, s := range list {
			switch s := s.(type) {
			case *ast.ExprStmt, *ast.IncDecStmt, *ast.DeferStmt:
				add(s.Pos(), s.End(), "")
			case *ast.AssignStmt:
				if s.Tok != token.DEFINE {
					add(s.Pos(), s.End(), "")
				}
			}
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if other, ok := swaps[n.Op]; ok {
				add(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), other.String())
			}
		case *ast.IfStmt:
			cond := string(text[files.Position(n.Cond.Pos()).Offset:files.Position(n.Cond.End()).Offset])
			add(n.Cond.Pos(), n.Cond.End(), "("+cond+") && false")
			add(n.Cond.Pos(), n.Cond.End(), "("+cond+") || true")
		case *ast.BlockStmt:
			statements(n.List)
		case *ast.CaseClause:
			statements(n.Body)
		}
		return true
	})
	return all, nil
}

// try runs the tests with a change: "killed", "LIVED", or "invalid" if it does not
// compile.
func try(ctx context.Context, c change) (string, error) {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	text, err := os.ReadFile(c.file)
	if err != nil {
		return "", err
	}
	full, err := filepath.Abs(c.file)
	if err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {full: changed}})
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.WriteFile(changed, bytes.Join([][]byte{text[:c.from], text[c.to:]}, []byte(c.new)), 0o600),
		os.WriteFile(overlay, replace, 0o600)); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, *timeout+30*time.Second)
	defer cancel()
	test := exec.CommandContext(ctx, "go", "test", "-short", "-failfast", "-vet=off", "-skip", *skip, "-overlay", overlay, "-timeout", timeout.String(), "./"+filepath.ToSlash(c.dir))
	test.WaitDelay = 10 * time.Second
	out, err := test.CombinedOutput()
	switch {
	case err == nil:
		return "LIVED", nil
	case bytes.Contains(out, []byte("[build failed]")), bytes.Contains(out, []byte("[setup failed]")):
		return "invalid", nil
	}
	return "killed", nil
}
