package hand

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"sync/atomic"

	"github.com/eagergc/eagergc/gc"
)

// A Program is a policy that was checked.
type Program struct {
	files   *token.FileSet
	info    *types.Info
	methods map[string]*ast.FuncDecl // of the policy's type
	funcs   map[types.Object]*ast.FuncDecl
	fields  []*types.Var // of the policy's type
	failed  atomic.Pointer[error]
}

// sources are what a policy may import, as far as it may use it.
var sources = map[string]string{
	"time": `package time
type Duration int64
const ( Nanosecond Duration = 1; Microsecond = 1000 * Nanosecond; Millisecond = 1000 * Microsecond; Second = 1000 * Millisecond )
func (d Duration) Seconds() float64
`,
	"math": `package math
const ( MaxInt64 = 1<<63 - 1 )
func Sqrt(x float64) float64
func Exp(x float64) float64
func Log(x float64) float64
func Abs(x float64) float64
`,
	"github.com/eagergc/eagergc/pressure": `package pressure
type Space uint8
type Sample struct { Space Space; Live, Reserved, Limit int64 }
func (s Sample) Pressure() float64
func (s Sample) Headroom() int64
`,
	"github.com/eagergc/eagergc/gc": `package gc
import ("time"; "github.com/eagergc/eagergc/pressure")
type PointKind uint8
const ( Allocation PointKind = iota; Sync )
type Point struct { Now time.Duration; At PointKind; Sample pressure.Sample; Request int64; Wait time.Duration; WillBlock bool
	Allocated, Freed, LiveAfter int64; Cost time.Duration; Slowdown float64; Running bool; Cycles uint64 }
type Action uint8
const ( Skip Action = iota; Overlap; Block )
type Decision struct { Action Action; Wake int64; Reason string }
type Trigger uint8
const ( TriggerPolicy Trigger = iota; TriggerRefusal; TriggerNatural; TriggerExplicit )
type Cycle struct { Start, Duration, Exposed time.Duration; Trigger Trigger; Action Action; Freed, LiveAfter, Limit, Wanted int64 }
type Policy interface { Decide(Point) Decision; Observe(Cycle); String() string }
`,
}

// An importer knows sources.
type importer map[string]*types.Package

func (m importer) Import(path string) (*types.Package, error) {
	if p := m[path]; p != nil {
		return p, nil
	}
	text, ok := sources[path]
	if !ok {
		return nil, fmt.Errorf("a policy may import time, math and gc, not %q", path)
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, text, 0)
	if err != nil {
		return nil, err
	}
	c := types.Config{Importer: m, IgnoreFuncBodies: true}
	p, err := c.Check(path, files, []*ast.File{file}, nil)
	m[path] = p
	return p, err
}

// Parse checks a file. Its error names the first place that is wrong as LINE:COLUMN.
func Parse(text string) (*Program, error) {
	p := &Program{files: token.NewFileSet(), methods: make(map[string]*ast.FuncDecl), funcs: make(map[types.Object]*ast.FuncDecl)}
	file, err := parser.ParseFile(p.files, "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	p.info = &types.Info{Types: make(map[ast.Expr]types.TypeAndValue), Defs: make(map[*ast.Ident]types.Object), Uses: make(map[*ast.Ident]types.Object),
		Selections: make(map[*ast.SelectorExpr]*types.Selection)}
	imports := importer{}
	c := types.Config{Importer: imports}
	pkg, err := c.Check("policy", p.files, []*ast.File{file}, p.info)
	if err != nil {
		return nil, err
	}
	g, err := imports.Import("github.com/eagergc/eagergc/gc")
	if err != nil {
		return nil, err
	}
	policy := g.Scope().Lookup("Policy").Type().Underlying().(*types.Interface)
	var of *types.Named
	for _, name := range pkg.Scope().Names() {
		if t, ok := pkg.Scope().Lookup(name).Type().(*types.Named); ok && types.Implements(types.NewPointer(t), policy) {
			of = t
		}
	}
	if of == nil {
		return nil, fmt.Errorf("1:1: no type has the methods Decide(gc.Point) gc.Decision, Observe(gc.Cycle) and String() string")
	}
	state, ok := of.Underlying().(*types.Struct)
	if !ok {
		return nil, p.errorf(file, "the policy %s is no struct", of.Obj().Name())
	}
	for f := range state.Fields() {
		if _, ok := f.Type().Underlying().(*types.Basic); !ok {
			return nil, fmt.Errorf("%s: the field %s is no number, truth value or text", p.files.Position(f.Pos()), f.Name())
		}
		p.fields = append(p.fields, f)
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if f.Recv != nil {
			p.methods[f.Name.Name] = f
		} else {
			p.funcs[p.info.Defs[f.Name]] = f
		}
		if err := p.allowed(f); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *Program) errorf(at ast.Node, format string, args ...any) error {
	return fmt.Errorf("%s: %s", p.files.Position(at.Pos()), fmt.Sprintf(format, args...))
}

// allowed refuses what does not run here.
func (p *Program) allowed(f *ast.FuncDecl) (err error) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if err != nil {
			return false
		}
		switch n := n.(type) {
		case nil, *ast.BlockStmt, *ast.IfStmt, *ast.SwitchStmt, *ast.CaseClause, *ast.ForStmt, *ast.ReturnStmt, *ast.AssignStmt, *ast.IncDecStmt, *ast.ExprStmt,
			*ast.Ident, *ast.BasicLit, *ast.BinaryExpr, *ast.ParenExpr, *ast.SelectorExpr, *ast.CallExpr, *ast.CompositeLit, *ast.KeyValueExpr,
			*ast.DeclStmt, *ast.GenDecl, *ast.ValueSpec, *ast.BranchStmt, *ast.EmptyStmt:
			if b, ok := n.(*ast.BranchStmt); ok && (b.Label != nil || b.Tok != token.BREAK && b.Tok != token.CONTINUE) {
				err = p.errorf(n, "%s does not run here", b.Tok)
			}
		case *ast.UnaryExpr:
			if n.Op == token.AND || n.Op == token.ARROW {
				err = p.errorf(n, "%s does not run here", n.Op)
			}
		default:
			err = p.errorf(n, "%s does not run here", strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%T", n), "*ast."), "Stmt"), "Expr"))
		}
		return err == nil
	})
	return err
}

// Name is what the policy calls itself.
func (p *Program) Name() (string, error) {
	name := p.New().String()
	return name, p.Failed()
}

// Failed returns the first error of the policies that ran, with its place: a division
// by zero, or too many steps. After it a policy answers that it skips.
func (p *Program) Failed() error {
	if err := p.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// New returns a fresh policy.
func (p *Program) New() gc.Policy {
	s := &policy{Program: p, state: make(map[string]any)}
	for _, f := range p.fields {
		s.state[f.Name()] = zero(f.Type())
	}
	return s
}
