// Package vet has an analyzer that finds C calls during which a finalizer may free the memory that
// C uses.
//
// A method may pass C memory of its receiver to C and not use the receiver afterwards. Then a cycle
// may run the receiver's finalizer, cleanup or release while C reads the memory: see gc/AUDIT.md.
// The same is true of other parameters. The analyzer checks the types of a package to which the
// package gives a finalizer, a cleanup, gc.Own or pressure.Own. It needs the output of cgo, so go
// vet runs it:
//
//	go vet -vettool=$(which eagergc-vet) ./...
//
// It does not report calls that are safe:
//
//   - The call passes the address of Go memory, which cgo keeps alive.
//   - The function uses the receiver later on some path, by runtime.KeepAlive or otherwise. Go's own
//     liveness analysis has the same rule.
//   - A deferred call uses the receiver.
//   - The function holds a lock that the finalizer takes, too.
//   - The function has removed the finalizer before.
//
// It looks at receivers, parameters and local variables. A local variable may hold only new objects,
// from a literal or from a function of the package that makes them. It is not reported if earlier
// code stores it, or passes it to another function, because something else may keep it alive.
//
// The analyzer does not see an object in a field of another object or in a variable of a closure.
// Nor does it see C memory that reaches C through another Go function, or objects without a
// finalizer that share memory with one that has a finalizer, or C memory in numbers, slices, arrays
// and maps, or deferred C calls.
package vet

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"
)

// Analyzer reports C calls whose memory may be freed during the call. It is safe for concurrent
// use.
var Analyzer = &analysis.Analyzer{
	Name: "keepalive",
	Doc:  "find C calls during which a finalizer may free the memory that they use",
	URL:  "https://pkg.go.dev/github.com/eagergc/eagergc/gc/vet",
	Run:  run,
}

func run(pass *analysis.Pass) (any, error) {
	p := &pkg{Pass: pass, funcs: make(map[types.Object]*ast.FuncDecl), makers: make(map[types.Object]bool)}
	for _, file := range pass.Files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				p.funcs[pass.TypesInfo.Defs[f.Name]] = f
				p.order = append(p.order, f)
			}
		}
	}
	if p.owners = p.findOwners(); len(p.owners) == 0 {
		return nil, nil
	}
	for _, f := range p.order {
		object := pass.TypesInfo.Defs[f.Name]
		for _, field := range params(f) {
			for _, name := range field.Names {
				v := pass.TypesInfo.Defs[name] // nil for _
				if v == nil {
					continue
				}
				if o := p.owners[pointed(v.Type())]; o != nil && !o.isOnlyFinalizer(object) {
					p.check(f, object, v, o)
				}
			}
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			id, _ := n.(*ast.Ident)
			if v := pass.TypesInfo.Defs[id]; v != nil && p.owners[pointed(v.Type())] != nil {
				p.check(f, nil, v, p.owners[pointed(v.Type())])
			}
			return true
		})
	}
	return nil, nil
}

// A pkg is a package with its functions.
type pkg struct {
	*analysis.Pass
	funcs  map[types.Object]*ast.FuncDecl
	order  []*ast.FuncDecl // as they are in the files
	owners map[*types.TypeName]*owner
	makers map[types.Object]bool // what makes has found
}

// params returns the receiver and the parameters.
func params(f *ast.FuncDecl) (all []*ast.Field) {
	if f.Recv != nil {
		all = append(all, f.Recv.List...)
	}
	return append(all, f.Type.Params.List...)
}

// calls calls each for the calls of a function in the package, and the functions that they are in.
func (p *pkg) calls(f types.Object, each func(in *ast.FuncDecl, c *ast.CallExpr)) {
	for _, in := range p.funcs {
		ast.Inspect(in, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok && p.called(c) == f {
				each(in, c)
			}
			return true
		})
	}
}

// parameter returns the index of v among the parameters of f; -1 if it is none of them.
func (p *pkg) parameter(f *ast.FuncDecl, v types.Object) int {
	i := 0
	for _, field := range f.Type.Params.List {
		for _, name := range field.Names {
			if p.TypesInfo.Defs[name] == v {
				return i
			}
			i++
		}
	}
	return -1
}

// pointed returns the named type that a type points to, or nil.
func pointed(t types.Type) *types.TypeName {
	p, ok := types.Unalias(t).(*types.Pointer)
	if !ok {
		return nil
	}
	named, ok := types.Unalias(p.Elem()).(*types.Named)
	if !ok {
		return nil
	}
	return named.Obj()
}

// called returns the function that a call calls, or nil if it is not known.
func (p *pkg) called(c *ast.CallExpr) types.Object { return typeutil.Callee(p.TypesInfo, c) }

// isFunc reports whether f is the function with that name in the package with that path.
func isFunc(f types.Object, path, name string) bool {
	return f != nil && f.Pkg() != nil && f.Name() == name && f.Pkg().Path() == path
}

// uses reports whether v is used in n.
func (p *pkg) uses(n ast.Node, v types.Object) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && p.TypesInfo.Uses[id] == v {
			found = true
		}
		return !found && !isNothing(n)
	})
	return found
}

// isNothing reports whether n is _ = v, for which the compiler generates no code.
func isNothing(n ast.Node) bool {
	a, ok := n.(*ast.AssignStmt)
	if !ok || len(a.Lhs) != 1 || len(a.Rhs) != 1 {
		return false
	}
	to, _ := a.Lhs[0].(*ast.Ident)
	_, variable := a.Rhs[0].(*ast.Ident)
	return variable && to != nil && to.Name == "_"
}
