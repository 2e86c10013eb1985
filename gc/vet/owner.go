package vet

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// An owner is a type whose objects free C memory when they die.
type owner struct {
	finalizers []types.Object // functions that free it
	fields     []string       // fields that the finalizers mention; empty if the finalizers could not be read
	locks      []lock         // locks that the finalizers take
}

// A lock is identified by its path from the object, such as mu or context.mu. A lock whose type is
// declared in the package is identified by that type, because objects that share it have several
// paths to it.
type lock struct {
	path string
	of   *types.TypeName
}

func (l lock) same(k lock) bool {
	return l.of != nil && l.of == k.of || l.of == nil && k.of == nil && l.path == k.path
}

// findOwners returns the types of the package that get a finalizer, a cleanup or Own.
func (p *pkg) findOwners() map[*types.TypeName]*owner {
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

// owned returns the object and the function of a call that sets a finalizer, a cleanup or a
// release, or nil for other calls.
func (p *pkg) owned(c *ast.CallExpr) (object, release ast.Expr) {
	f := p.called(c)
	switch {
	case isFunc(f, "runtime", "SetFinalizer") && len(c.Args) == 2:
		if id, ok := c.Args[1].(*ast.Ident); ok && id.Name == "nil" {
			return nil, nil
		}
		return c.Args[0], c.Args[1]
	case isFunc(f, "runtime", "AddCleanup") && len(c.Args) == 3:
		return c.Args[0], nil // a cleanup does not get the object, so it mentions no fields or locks of it
	case (isFunc(f, "github.com/eagergc/eagergc/gc", "Own") || isFunc(f, "github.com/eagergc/eagergc/pressure", "Own")) && len(c.Args) == 5:
		return c.Args[1], nil
	}
	return nil, nil
}

// passed returns the values of an expression of f: itself, or the arguments of f's callers in the
// package if it is a parameter.
func (p *pkg) passed(f *ast.FuncDecl, e ast.Expr) (all []ast.Expr) {
	id, ok := e.(*ast.Ident)
	if !ok {
		return []ast.Expr{e}
	}
	at := p.parameter(f, p.TypesInfo.Uses[id])
	if at < 0 {
		return []ast.Expr{e}
	}
	p.calls(p.TypesInfo.Defs[f.Name], func(_ *ast.FuncDecl, c *ast.CallExpr) {
		if at < len(c.Args) {
			all = append(all, c.Args[at])
		}
	})
	return all
}

// learn reads a finalizer.
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

// read notes the fields and locks of v in a body, and in functions of the package that get v from
// it.
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

// path returns the path from v to a field: context.handle for v.context.handle.
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

// locks returns the lock that a call takes: v.context.Lock() takes context.
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
	path, ok := p.path(s.X, v)
	return lock{path: path}, ok
}

// isOnlyFinalizer reports whether only the runtime calls f.
func (o *owner) isOnlyFinalizer(f types.Object) bool {
	return slices.Contains(o.finalizers, f) && !f.Exported()
}

// frees reports whether the finalizer mentions a field. If it could not be read, it is assumed to.
func (o *owner) frees(field string) bool {
	return len(o.fields) == 0 || field == "" || slices.Contains(o.fields, field)
}
