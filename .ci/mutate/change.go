package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
)

// A change is one way in which a piece of a file may differ.
type change struct {
	dir, file string
	line      int
	from, to  int // bytes of the file
	left, op  int // of an operator: where what is left of it ends, and where it begins
	kind      kind
	old, new  string // as a reader sees it
	number    int    // among the changes of a build
	invalid   bool   // it does not compile
}

type kind int

const (
	omitted  kind = iota // a statement that is left out
	never                // a condition that is never true
	always               // or always
	compared             // another operator of those that give a bool
	computed             // another operator of those that compute
)

func (c *change) String() string { return fmt.Sprintf("%s:%d: %q -> %q", c.file, c.line, c.old, c.new) }

// swaps are the operators that are put in another's place. Of a sum of two only the
// first is left, since strings have no difference.
var swaps = map[token.Token]string{
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">",
	token.EQL: "!=", token.NEQ: "==", token.LAND: "||", token.LOR: "&&",
	token.ADD: "first", token.SUB: "+", token.MUL: "/", token.QUO: "*",
}

var helpers = map[token.Token]string{token.ADD: "mutantAdd", token.SUB: "mutantSub", token.MUL: "mutantMul", token.QUO: "mutantQuo"}

// ofFile returns the changes of a file: another operator, a condition that is
// always or never true, a statement that is left out.
func ofFile(name string) (all []*change, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	at := func(p token.Pos) int { return files.Position(p).Offset }
	add := func(n ast.Node, k kind, new string) *change {
		c := &change{dir: filepath.Dir(name), file: name, line: files.Position(n.Pos()).Line, from: at(n.Pos()), to: at(n.End()), kind: k, new: new}
		c.old = string(text[c.from:c.to])
		all = append(all, c)
		return c
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			return n.Tok != token.CONST
		case *ast.ArrayType:
			return false // its length is a constant
		case *ast.BinaryExpr:
			if other, ok := swaps[n.Op]; ok {
				k := compared
				if helpers[n.Op] != "" {
					k = computed
				}
				c := add(n, k, other)
				c.left, c.op, c.old = at(n.X.End()), at(n.OpPos), n.Op.String()
			}
		case *ast.IfStmt:
			add(n.Cond, never, "false")
			add(n.Cond, always, "true")
		case *ast.BlockStmt:
			statements(n.List, add)
		case *ast.CaseClause:
			statements(n.Body, add)
		}
		return true
	})
	return all, nil
}

func statements(list []ast.Stmt, add func(ast.Node, kind, string) *change) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if call, ok := s.X.(*ast.CallExpr); ok {
				if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "panic" {
					continue // which may have to end a function
				}
			}
			add(s, omitted, "")
		case *ast.IncDecStmt, *ast.DeferStmt:
			add(s, omitted, "")
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE {
				add(s, omitted, "")
			}
		}
	}
}

// A piece is text that takes the place of some bytes of a file.
type piece struct {
	from, to int
	text     string
}

// switched returns the text of a file with its changes behind switches.
func switched(text []byte, changes []*change) []byte {
	inner := slices.SortedFunc(slices.Values(changes), func(a, b *change) int { return (a.to - a.from) - (b.to - b.from) })
	var pieces []piece // in order, none in another
	// of returns the text from one byte to another, with its pieces.
	of := func(from, to int) string {
		var s string
		for _, p := range pieces {
			if p.from >= from && p.to <= to {
				s += string(text[from:p.from]) + p.text
				from = p.to
			}
		}
		return s + string(text[from:to])
	}
	for _, c := range inner { // what lies in another comes first
		p := piece{c.from, c.to, c.behindSwitch(of)}
		pieces = slices.DeleteFunc(pieces, func(q piece) bool { return q.from >= p.from && q.to <= p.to })
		n, _ := slices.BinarySearchFunc(pieces, p, func(a, b piece) int { return a.from - b.from })
		pieces = slices.Insert(pieces, n, p)
	}
	return []byte(of(0, len(text)))
}

func (c *change) behindSwitch(of func(from, to int) string) string {
	all := of(c.from, c.to)
	switch c.kind {
	case omitted:
		return fmt.Sprintf("if !mutant(%d) { %s }", c.number, all)
	case never:
		return fmt.Sprintf("(%s) && !mutant(%d)", all, c.number)
	case always:
		return fmt.Sprintf("(%s) || mutant(%d)", all, c.number)
	}
	left, right := of(c.from, c.left), of(c.op+len(c.old), c.to)
	if c.kind == compared {
		return fmt.Sprintf("(mutant(%d) && (%s %s %s) || !mutant(%[1]d) && (%[2]s %[5]s %[4]s))", c.number, left, c.new, right, c.old)
	}
	return fmt.Sprintf("%s(%d, %s, %s)", helpers[operators[c.old]], c.number, left, right)
}

var operators = map[string]token.Token{"+": token.ADD, "-": token.SUB, "*": token.MUL, "/": token.QUO}

// switches is the file that is added to a package: mutant(n) says whether change n is on.
const switches = `package %s

import (
	"os"
	"strconv"
	"sync/atomic"
)

var mutantOn, _ = strconv.Atoi(os.Getenv("MUTANT"))
var mutantSeen [%d]atomic.Bool

func mutant(n int) bool {
	if mutantOn < 0 {
		mutantNote(n)
	}
	return n == mutantOn
}

//go:noinline
func mutantNote(n int) {
	if !mutantSeen[n].Swap(true) {
		if f, err := os.OpenFile(os.Getenv("MUTANTS_SEEN"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600); err == nil {
			f.WriteString(strconv.Itoa(n) + "\n")
			f.Close()
		}
	}
}

type mutantNumber interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}

func mutantAdd[T mutantNumber | ~string](n int, a, b T) T {
	if mutant(n) {
		return a
	}
	return a + b
}

func mutantSub[T mutantNumber](n int, a, b T) T {
	if mutant(n) {
		return a + b
	}
	return a - b
}

func mutantMul[T mutantNumber](n int, a, b T) T {
	if mutant(n) {
		return a / b
	}
	return a * b
}

func mutantQuo[T mutantNumber](n int, a, b T) T {
	if mutant(n) {
		return a * b
	}
	return a / b
}
`
