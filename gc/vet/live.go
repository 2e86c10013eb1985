package vet

import (
	"go/ast"
	"go/token"
	"slices"

	"golang.org/x/tools/go/cfg"
)

// keptBefore reports whether v is alive until the function's end because of code before the call: a
// deferred call that uses v, a lock that the finalizer takes, or the removal of the finalizer.
func (m *memory) keptBefore(body ast.Node, call token.Pos) (kept bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		if n == nil || n.Pos() >= call {
			return false
		}
		switch n := n.(type) {
		case *ast.DeferStmt:
			kept = kept || m.defers(n.Call)
			return false
		case *ast.CallExpr:
			if l, ok := m.locks(n, m.v); ok && slices.ContainsFunc(m.owner.locks, l.same) {
				kept = true
			}
			if object, _ := m.owned(n); object == nil && isFunc(m.called(n), "runtime", "SetFinalizer") && m.is(n.Args[0], m.v) {
				kept = true
			}
		}
		return true
	})
	return kept
}

// defers reports whether a deferred call keeps v as an argument, as the receiver, or in a closure.
// A part of v does not count, because the arguments are evaluated at the defer statement.
func (m *memory) defers(c *ast.CallExpr) bool {
	if lit, ok := ast.Unparen(c.Fun).(*ast.FuncLit); ok && m.uses(lit, m.v) {
		return true
	}
	if s, ok := ast.Unparen(c.Fun).(*ast.SelectorExpr); ok && (m.is(s.X, m.v) || !isPointer(m.TypesInfo.TypeOf(s.X)) && m.inGo(s.X)) {
		return true
	}
	return slices.ContainsFunc(c.Args, func(a ast.Expr) bool { return m.keeps(a) })
}

// usedAfter reports whether v is used after a call on some path to the end, and so is alive in the
// call.
func (m *memory) usedAfter(flow *cfg.CFG, call *ast.CallExpr) bool {
	seen := make(map[*cfg.Block]bool)
	var from func(b *cfg.Block) bool
	from = func(b *cfg.Block) bool {
		if seen[b] {
			return false
		}
		seen[b] = true
		for _, n := range b.Nodes {
			if m.uses(n, m.v) {
				return true
			}
			if n.Pos() <= m.v.Pos() && m.v.Pos() < n.End() {
				return false // the next round of a loop declares v anew
			}
		}
		return slices.ContainsFunc(b.Succs, from)
	}
	var block *cfg.Block // with the smallest node that contains the call, because the head of a loop contains its body
	at := 0
	for _, b := range flow.Blocks {
		for i, n := range b.Nodes {
			if n.Pos() <= call.Pos() && call.End() <= n.End() && (block == nil || n.End()-n.Pos() < block.Nodes[at].End()-block.Nodes[at].Pos()) {
				block, at = b, i
			}
		}
	}
	if block == nil {
		return true // the call is unreachable
	}
	return m.usesFrom(block.Nodes[at], call.End()) ||
		slices.ContainsFunc(block.Nodes[at+1:], func(n ast.Node) bool { return m.uses(n, m.v) }) ||
		slices.ContainsFunc(block.Succs, from)
}

// usesFrom reports whether n uses v after pos. A call on v, or with v as an argument, counts too if
// the call that ends at pos is one of its arguments.
func (m *memory) usesFrom(n ast.Node, pos token.Pos) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			found = found || n.Pos() >= pos && m.TypesInfo.Uses[n] == m.v
		case *ast.AssignStmt: // the left side is evaluated after the call
			if n.Rhs[0].Pos() < pos && pos <= n.End() {
				found = found || slices.ContainsFunc(n.Lhs, func(l ast.Expr) bool { return m.uses(l, m.v) })
			}
		case *ast.CallExpr:
			if n.Pos() < pos && pos < n.End() {
				s, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr)
				found = found || ok && m.is(s.X, m.v) || slices.ContainsFunc(n.Args, func(a ast.Expr) bool { return m.is(a, m.v) })
			}
		}
		return !found && !isNothing(n)
	})
	return found
}
