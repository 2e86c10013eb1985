package vet

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// An owner is a type whose objects give C memory back once they are dead.
type owner struct {
	finalizers []types.Object // functions that do
	fields     []string       // that those mention; none if they could not be read
	locks      []lock         // that those take
}

// A lock is told by its way from the object, mu or context.mu; or, where it is a type of the package's own that has a
// method Lock, by its type: objects that share one have several ways to it.
type lock struct {
	path string
	of   *types.TypeName
}

func (l lock) same(k lock) bool {
	return l.of != nil && l.of == k.of || l.of == nil && k.of == nil && l.path == k.path
}

// owners are the types of the package that get a finalizer, a cleanup or gc.Own.
func (p *pkg) owners() map[*types.TypeName]*owner {
	all := make(map[*types.TypeName]*owner)
	for _, f := range p.funcs {
		ast.Inspect(f, func(n ast.Node) bool {
			c, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			object, release := p.owned(c)
			if object == nil {
				return true
			}
			if name := pointed(p.TypesInfo.TypeOf(object)); name != nil && name.Pkg() == p.Pkg {
				if all[name] == nil {
					all[name] = new(owner)
				}
				for _, r := range p.passed(f, release) {
					all[name].learn(p, r)
				}
			}
			return true
		})
	}
	return all
}

// owned returns the object that a call watches over, and the function that is to run; nil if it does nothing of that kind.
func (p *pkg) owned(c *ast.CallExpr) (object, release ast.Expr) {
	f := p.called(c)
	switch {
	case isFunc(f, "runtime", "SetFinalizer") && len(c.Args) == 2:
		if id, ok := c.Args[1].(*ast.Ident); ok && id.Name == "nil" {
			return nil, nil
		}
		return c.Args[0], c.Args[1]
	case isFunc(f, "runtime", "AddCleanup") && len(c.Args) == 3:
		return c.Args[0], nil // it has no object: fields and locks are not those of one
	case isFunc(f, "github.com/eagergc/eagergc/gc", "Own") && len(c.Args) == 5:
		return c.Args[1], nil
	}
	return nil, nil
}

// passed is what an expression of f stands for: itself or, if it is a parameter, what callers in the package give for that.
func (p *pkg) passed(f *ast.FuncDecl, e ast.Expr) (all []ast.Expr) {
	id, ok := e.(*ast.Ident)
	if !ok {
		return []ast.Expr{e}
	}
	at, i := -1, 0
	for _, field := range f.Type.Params.List {
		for _, name := range field.Names {
			if p.TypesInfo.Defs[name] == p.TypesInfo.Uses[id] {
				at = i
			}
			i++
		}
	}
	if at < 0 {
		return []ast.Expr{e}
	}
	for _, c := range p.calls(p.TypesInfo.Defs[f.Name]) {
		if at < len(c.Args) {
			all = append(all, c.Args[at])
		}
	}
	return all
}

// learn reads the finalizer.
func (o *owner) learn(p *pkg, release ast.Expr) {
	var body *ast.BlockStmt
	var v types.Object
	switch f := release.(type) {
	case nil:
		return
	case *ast.FuncLit:
		if body = f.Body; len(f.Type.Params.List) == 1 && len(f.Type.Params.List[0].Names) == 1 {
			v = p.TypesInfo.Defs[f.Type.Params.List[0].Names[0]]
		}
	default:
		if object := p.called(&ast.CallExpr{Fun: f}); object != nil {
			o.finalizers = append(o.finalizers, object)
			body, v = p.ofFirst(object)
		}
	}
	if body != nil && v != nil {
		o.read(p, body, v, 3)
	}
}

// ofFirst returns the body of a function, and its receiver or first parameter.
func (p *pkg) ofFirst(f types.Object) (*ast.BlockStmt, types.Object) {
	d := p.funcs[f]
	if d == nil {
		return nil, nil
	}
	if all := params(d); len(all) > 0 && len(all[0].Names) > 0 {
		return d.Body, p.TypesInfo.Defs[all[0].Names[0]]
	}
	return nil, nil
}

// read notes fields and locks of v in a body, and in functions of the package that it gives v to.
func (o *owner) read(p *pkg, body ast.Node, v types.Object, depth int) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if path, ok := p.path(n, v); ok {
				field, _, _ := strings.Cut(path, ".")
				o.fields = append(o.fields, field)
			}
		case *ast.CallExpr:
			if l, ok := p.locks(n, v); ok {
				o.locks = append(o.locks, l)
			}
			f := p.called(n)
			next, to := p.ofFirst(f)
			if next == nil || depth == 0 {
				return true
			}
			s, isMethod := ast.Unparen(n.Fun).(*ast.SelectorExpr)
			if isMethod && p.is(s.X, v) || len(n.Args) > 0 && p.is(n.Args[0], v) {
				o.read(p, next, to, depth-1)
			}
		}
		return true
	})
}

// path is the way from v to a field: v.context.handle is context.handle.
func (p *pkg) path(e ast.Expr, v types.Object) (string, bool) {
	s, ok := ast.Unparen(e).(*ast.SelectorExpr)
	if !ok {
		return "", false
	}
	if p.is(s.X, v) {
		return s.Sel.Name, true
	}
	before, ok := p.path(s.X, v)
	return before + "." + s.Sel.Name, ok
}

func (p *pkg) is(e ast.Expr, v types.Object) bool {
	id, ok := ast.Unparen(e).(*ast.Ident)
	return ok && p.TypesInfo.Uses[id] == v
}

// locks returns what a call locks: v.context.Lock() locks context.
func (p *pkg) locks(c *ast.CallExpr, v types.Object) (lock, bool) {
	s, ok := ast.Unparen(c.Fun).(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "Lock" && s.Sel.Name != "RLock" {
		return lock{}, false
	}
	t := p.TypesInfo.TypeOf(s.X)
	name := pointed(t)
	if named, ok := types.Unalias(t).(*types.Named); ok {
		name = named.Obj()
	}
	if name != nil && name.Pkg() == p.Pkg {
		return lock{of: name}, true
	}
	if p.is(s.X, v) {
		return lock{}, true
	}
	path, ok := p.path(s.X, v)
	return lock{path: path}, ok
}

// isOnlyFinalizer reports whether nobody but the runtime calls f.
func (o *owner) isOnlyFinalizer(f types.Object) bool {
	return slices.Contains(o.finalizers, f) && !f.Exported()
}

// frees reports whether the finalizer has to do with a field. If it could not be read all are.
func (o *owner) frees(field string) bool {
	return len(o.fields) == 0 || field == "" || slices.Contains(o.fields, field)
}
