package vet

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/cfg"
)

// check reports the first C call of f that gets memory of v while nothing keeps v alive. Without an
// object, which is f's, v is a local variable.
func (p *pkg) check(f *ast.FuncDecl, object, v types.Object, o *owner) {
	m := &memory{pkg: p, v: v, owner: o, locals: make(map[types.Object]bool)}
	m.learn(f.Body)
	var flow *cfg.CFG
	done := false
	var look func(n ast.Node, inside bool) // inside is true in a function that may run at any time
	look = func(n ast.Node, inside bool) {
		ast.Inspect(n, func(n ast.Node) bool {
			if done {
				return false
			}
			switch n := n.(type) {
			case *ast.FuncLit:
				look(n.Body, true)
				return false
			case *ast.CallExpr:
				if lit, ok := ast.Unparen(n.Fun).(*ast.FuncLit); ok { // runs here; cgo wraps its calls in such functions
					look(lit.Body, inside)
					for _, a := range n.Args {
						look(a, inside)
					}
					return false
				}
				name, isC := cCall(n)
				if !isC || inside || !m.passes(n) {
					return true
				}
				if flow == nil {
					flow = cfg.New(f.Body, func(*ast.CallExpr) bool { return true })
				}
				if !m.keptBefore(f.Body, n.Pos()) && !m.usedAfter(flow, n) {
					if object == nil && !p.isNew(f, n.Pos(), v) {
						return true
					}
					if done = true; object != nil && !object.Exported() && p.callersKeep(f, object, v) {
						return false
					}
					p.Reportf(n.Pos(), "C.%s gets memory of %s, whose finalizer may run during the call: put runtime.KeepAlive(%s) after it", name, v.Name(), v.Name())
				}
			}
			return true
		})
	}
	look(f.Body, false)
}

// callersKeep reports whether the function has calls and every caller keeps its argument for v
// alive.
func (p *pkg) callersKeep(f *ast.FuncDecl, object, v types.Object) bool {
	keep, calls := true, 0
	p.calls(object, func(in *ast.FuncDecl, c *ast.CallExpr) {
		calls++
		id, ok := p.argument(f, c, v).(*ast.Ident)
		if !ok {
			keep = false
			return
		}
		m := &memory{pkg: p, v: p.TypesInfo.Uses[id], owner: new(owner)}
		flow := cfg.New(in.Body, func(*ast.CallExpr) bool { return true })
		keep = keep && m.v != nil && (m.keptBefore(in.Body, c.Pos()) || m.usedAfter(flow, c))
	})
	return keep && calls > 0
}

// argument returns the argument of a call of f for its receiver or parameter v.
func (p *pkg) argument(f *ast.FuncDecl, c *ast.CallExpr, v types.Object) ast.Expr {
	if i := p.parameter(f, v); i >= 0 {
		if i < len(c.Args) {
			return ast.Unparen(c.Args[i])
		}
		return nil
	}
	if s, ok := ast.Unparen(c.Fun).(*ast.SelectorExpr); ok && f.Recv != nil {
		return ast.Unparen(s.X)
	}
	return nil
}

// cCall returns the name of the C function that a call in cgo's output calls.
func cCall(c *ast.CallExpr) (string, bool) {
	id, ok := ast.Unparen(c.Fun).(*ast.Ident)
	if !ok {
		return "", false
	}
	for _, prefix := range []string{"_Cfunc_", "_C2func_"} {
		if name, ok := strings.CutPrefix(id.Name, prefix); ok {
			return name, true
		}
	}
	return "", false
}

// A memory knows which expressions of a function are C memory of v.
type memory struct {
	*pkg
	v      types.Object
	owner  *owner
	locals map[types.Object]bool // variables that hold C memory of v
}

// learn finds the variables that hold C memory of v, also by way of other variables.
func (m *memory) learn(body ast.Node) {
	for before := -1; len(m.locals) != before; {
		before = len(m.locals)
		eachAssigned(body, func(id *ast.Ident, value ast.Expr) {
			if o := m.TypesInfo.ObjectOf(id); o != nil && o != m.v && m.points(value) {
				m.locals[o] = true
			}
		})
	}
}

// eachAssigned calls f for each variable that code in body assigns or declares, with its value. After
// v, err := g() that is the call, for both. cgo declares some arguments of a call by var.
func eachAssigned(body ast.Node, f func(id *ast.Ident, value ast.Expr)) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				if id, ok := to.(*ast.Ident); ok {
					f(id, n.Rhs[min(i, len(n.Rhs)-1)])
				}
			}
		case *ast.ValueSpec:
			for i, id := range n.Names {
				if len(n.Values) > 0 {
					f(id, n.Values[min(i, len(n.Values)-1)])
				}
			}
		}
		return true
	})
}

// points reports whether e is a pointer to C memory of v.
func (m *memory) points(e ast.Expr) bool { return isPointer(m.TypesInfo.TypeOf(e)) && m.from(e) }

// passes reports whether a C call gets C memory of v and no argument that keeps v alive.
func (m *memory) passes(c *ast.CallExpr) (passes bool) {
	for _, a := range c.Args {
		if m.keeps(a) {
			return false
		}
		passes = passes || m.points(a)
	}
	return passes
}

// keeps reports whether e is v or an address in it, which cgo keeps alive.
func (m *memory) keeps(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return m.is(e, m.v)
	case *ast.UnaryExpr:
		return e.Op == token.AND && m.inGo(e.X)
	case *ast.CallExpr:
		return m.isConversion(e) && m.keeps(e.Args[0])
	}
	return false
}

// inGo reports whether e is a place in the Go memory of v.
func (m *memory) inGo(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return m.is(e, m.v)
	case *ast.SelectorExpr:
		return m.is(e.X, m.v) || !isPointer(m.TypesInfo.TypeOf(e.X)) && m.inGo(e.X)
	case *ast.IndexExpr:
		_, array := m.TypesInfo.TypeOf(e.X).Underlying().(*types.Array)
		return array && m.inGo(e.X)
	}
	return false
}

// from reports whether e is, or is read through, a pointer in v to C memory that the finalizer
// frees.
func (m *memory) from(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return m.locals[m.TypesInfo.ObjectOf(e)]
	case *ast.SelectorExpr:
		if m.is(e.X, m.v) {
			return m.owner.frees(e.Sel.Name) && isPointer(m.TypesInfo.TypeOf(e)) && !isGo(m.TypesInfo.TypeOf(e))
		}
		return m.from(e.X)
	case *ast.StarExpr:
		return m.from(e.X)
	case *ast.IndexExpr:
		return m.from(e.X)
	case *ast.UnaryExpr:
		return e.Op == token.AND && m.from(e.X)
	case *ast.CallExpr:
		if m.isConversion(e) {
			return m.from(e.Args[0])
		}
		s, ok := ast.Unparen(e.Fun).(*ast.SelectorExpr) // v.native()
		return ok && m.is(s.X, m.v) && !isGo(m.TypesInfo.TypeOf(e)) && m.isGetter(e)
	}
	return false
}

// isGetter reports whether a method returns C memory of its receiver.
func (m *memory) isGetter(c *ast.CallExpr) bool {
	body, v := m.ofFirst(m.called(c))
	if body == nil {
		return false
	}
	of := &memory{pkg: m.pkg, v: v, owner: m.owner}
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) == 1 {
			e := ast.Unparen(r.Results[0])
			if inner, ok := e.(*ast.CallExpr); ok && !m.isConversion(inner) {
				return true // no deeper
			}
			found = found || of.points(e)
		}
		return true
	})
	return found
}

func (m *memory) isConversion(c *ast.CallExpr) bool {
	return len(c.Args) == 1 && m.TypesInfo.Types[c.Fun].IsType()
}

// isPointer reports whether values of a type may point to C memory.
func isPointer(t types.Type) bool {
	if t == nil {
		return false
	}
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		return true
	case *types.Basic:
		return u.Kind() == types.UnsafePointer
	}
	return false
}

// isGo reports whether a type points to a Go type. The types of cgo are called _Ctype_ and a name.
func isGo(t types.Type) bool {
	p, ok := t.Underlying().(*types.Pointer)
	if !ok {
		return false
	}
	if _, deeper := p.Elem().Underlying().(*types.Pointer); deeper {
		return isGo(p.Elem())
	}
	return !isOfC(p.Elem())
}

// isOfC reports whether a type is one of cgo's types.
func isOfC(t types.Type) bool {
	switch n := t.(type) {
	case *types.Alias:
		return strings.HasPrefix(n.Obj().Name(), "_Ctype_") || isOfC(n.Rhs())
	case *types.Named:
		return strings.HasPrefix(n.Obj().Name(), "_Ctype_")
	}
	return false
}
