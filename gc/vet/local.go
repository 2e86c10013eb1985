package vet

import (
	"go/ast"
	"go/token"
	"go/types"
)

// isNew reports whether v is a local variable of f that holds only new objects. Code before at must
// give one of them a finalizer, and nothing else may hold them then.
func (p *pkg) isNew(f *ast.FuncDecl, at token.Pos, v types.Object) bool {
	finalizer, other := false, v.Pos() < f.Body.Pos() || f.Body.End() < v.Pos()
	eachAssigned(f.Body, func(id *ast.Ident, value ast.Expr) {
		if p.TypesInfo.ObjectOf(id) != v {
			return
		}
		switch e := ast.Unparen(value).(type) {
		case *ast.UnaryExpr:
			_, literal := e.X.(*ast.CompositeLit)
			other = other || !literal
		case *ast.CallExpr:
			_, builtin := p.called(e).(*types.Builtin) // new
			makes := p.makes(p.called(e))
			finalizer, other = finalizer || makes && e.Pos() < at, other || !makes && !builtin
		default:
			other = true
		}
	})
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			object, _ := p.owned(c)
			finalizer = finalizer || c.Pos() < at && object != nil && p.is(object, v)
		}
		return true
	})
	return finalizer && !other && !p.escapes(f.Body, at, v)
}

// makes reports whether every object that f returns is new and has a finalizer.
func (p *pkg) makes(f types.Object) bool {
	d := p.funcs[f]
	known, ok := p.makers[f]
	if ok || d == nil {
		return known
	}
	p.makers[f] = false // while a recursive function is read
	makes, other := false, false
	ast.Inspect(d.Body, func(n ast.Node) bool {
		r, ok := n.(*ast.ReturnStmt)
		if !ok {
			return true
		}
		for _, e := range r.Results {
			isNew := false
			switch e := ast.Unparen(e).(type) {
			case *ast.CallExpr:
				isNew = p.makes(p.called(e))
			case *ast.Ident:
				isNew = p.isNew(d, r.Pos(), p.TypesInfo.Uses[e])
			}
			t := p.TypesInfo.TypeOf(e)
			_, several := t.(*types.Tuple)
			makes = makes || isNew
			other = other || !isNew && (several || p.owners[pointed(t)] != nil)
		}
		return true
	})
	p.makers[f] = makes && !other
	return p.makers[f]
}

// escapes reports whether code before at may give v to something that keeps it alive.
func (p *pkg) escapes(body ast.Node, at token.Pos, v types.Object) (found bool) {
	harmless := make(map[ast.Expr]bool)
	add := func(all ...ast.Expr) {
		for _, e := range all {
			harmless[ast.Unparen(e)] = true
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		if n == nil || n.Pos() >= at || found {
			return false
		}
		switch n := n.(type) {
		case *ast.ReturnStmt:
			return at < n.End()
		case *ast.GoStmt:
			found = p.uses(n, v)
		case *ast.FuncLit:
			found = !harmless[n] && p.uses(n, v)
		case *ast.SelectorExpr:
			if s := p.TypesInfo.Selections[n]; harmless[n] || s != nil && s.Kind() == types.FieldVal {
				add(n.X)
			}
		case *ast.BinaryExpr:
			add(n.X, n.Y)
		case *ast.AssignStmt:
			add(n.Lhs...)
		case *ast.CallExpr:
			add(n.Fun)
			if object, _ := p.owned(n); object != nil || isFunc(p.called(n), "runtime", "KeepAlive") {
				add(n.Args...)
			}
		case *ast.Ident:
			found = !harmless[n] && p.TypesInfo.Uses[n] == v
		}
		return true
	})
	return found
}
