// Package vet has an analyzer that finds C calls during which a finalizer may free the memory that they use.
//
// A method that passes C memory of its receiver to C, and does not use the receiver afterwards, lets a cycle run the receiver's finalizer (or
// cleanup, or what was given to gc.Own) while C still reads the memory: see gc/AUDIT.md. The same goes for other parameters. The analyzer looks
// at types of a package that get a finalizer, a cleanup or gc.Own there. It sees cgo's output, so that go vet runs it:
//
//	go vet -vettool=$(which eagergc-vet) ./...
//
// These are safe, and not reported: the address of Go memory is passed (cgo keeps it alive); the receiver is used later on some way to the function's end,
// by runtime.KeepAlive or else, which is what Go's own liveness goes by; a deferred call has it; a lock is held that the finalizer takes, too;
// the finalizer has been taken away before. C memory that goes to C by way of another Go function, and objects without a
// finalizer that share the memory of one that has it, are not seen.
package vet

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
)

// Analyzer reports C calls that may outlive their memory. It is safe for concurrent use.
var Analyzer = &analysis.Analyzer{
	Name: "keepalive",
	Doc:  "find C calls during which a finalizer may free the memory that they use",
	URL:  "https://pkg.go.dev/github.com/eagergc/eagergc/gc/vet",
	Run:  run,
}

func run(pass *analysis.Pass) (any, error) {
	p := &pkg{Pass: pass, funcs: make(map[types.Object]*ast.FuncDecl)}
	for _, file := range pass.Files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				p.funcs[pass.TypesInfo.Defs[f.Name]] = f
			}
		}
	}
	owners := p.owners()
	if len(owners) == 0 {
		return nil, nil
	}
	for object, f := range p.funcs {
		for _, field := range params(f) {
			for _, name := range field.Names {
				v := pass.TypesInfo.Defs[name]
				if o := owners[pointee(v)]; o != nil && !o.isOnlyFinalizer(object) {
					p.check(f, object, v, o)
				}
			}
		}
	}
	return nil, nil
}

// A pkg is a package with its functions.
type pkg struct {
	*analysis.Pass
	funcs map[types.Object]*ast.FuncDecl
}

// params are the receiver and the parameters.
func params(f *ast.FuncDecl) (all []*ast.Field) {
	if f.Recv != nil {
		all = append(all, f.Recv.List...)
	}
	return append(all, f.Type.Params.List...)
}

// calls are the calls of a function in the package.
func (p *pkg) calls(f types.Object) (all []*ast.CallExpr) {
	for _, in := range p.funcs {
		ast.Inspect(in, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok && p.called(c) == f {
				all = append(all, c)
			}
			return true
		})
	}
	return all
}

// pointee is the named type that a variable points to; nil if it does not.
func pointee(v types.Object) *types.TypeName {
	if v == nil {
		return nil
	}
	return pointed(v.Type())
}

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

// called is the function that a call calls; nil if that is not known.
func (p *pkg) called(c *ast.CallExpr) types.Object {
	switch f := ast.Unparen(c.Fun).(type) {
	case *ast.Ident:
		return p.TypesInfo.Uses[f]
	case *ast.SelectorExpr:
		return p.TypesInfo.Uses[f.Sel]
	}
	return nil
}

// isFunc reports whether f is that function of that package, or of one whose path ends in it.
func isFunc(f types.Object, path, name string) bool {
	return f != nil && f.Pkg() != nil && f.Name() == name && f.Pkg().Path() == path
}

// uses reports whether v is used in n.
func (p *pkg) uses(n ast.Node, v types.Object) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && p.TypesInfo.Uses[id] == v {
			found = true
		}
		return !found
	})
	return found
}
