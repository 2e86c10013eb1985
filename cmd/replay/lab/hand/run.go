package hand

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"math"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pressure"
)

// A policy is one that runs. Whole numbers are int64 whatever their type, others are
// float64; a struct is a map of its fields.
type policy struct {
	*Program
	state map[string]any
	steps int
	depth int // of calls
}

type fields = map[string]any

// Decide implements [gc.Policy].
func (s *policy) Decide(at gc.Point) gc.Decision {
	sample := fields{"Space": int64(at.Sample.Space), "Live": at.Sample.Live, "Reserved": at.Sample.Reserved, "Limit": at.Sample.Limit}
	d := s.method("Decide", fields{
		"Now": int64(at.Now), "At": int64(at.At), "Sample": sample, "Request": at.Request, "Wait": int64(at.Wait), "WillBlock": at.WillBlock,
		"Allocated": at.Allocated, "Freed": at.Freed, "LiveAfter": at.LiveAfter, "Cost": int64(at.Cost), "Slowdown": at.Slowdown, "Running": at.Running,
		"Cycles": int64(at.Cycles),
	}).(fields)
	action := d["Action"].(int64)
	if action < 0 || action > int64(gc.Block) {
		action = int64(gc.Skip)
	}
	return gc.Decision{Action: gc.Action(action), Wake: d["Wake"].(int64), Reason: d["Reason"].(string)}
}

// Observe implements [gc.Policy].
func (s *policy) Observe(c gc.Cycle) {
	s.method("Observe", fields{"Start": int64(c.Start), "Duration": int64(c.Duration), "Exposed": int64(c.Exposed), "Trigger": int64(c.Trigger),
		"Action": int64(c.Action), "Freed": c.Freed, "LiveAfter": c.LiveAfter, "Limit": c.Limit})
}

// String implements [gc.Policy].
func (s *policy) String() string { return s.method("String").(string) }

func (s *policy) method(name string, args ...any) (result any) {
	f := s.methods[name]
	if f.Type.Results != nil {
		result = zero(s.info.TypeOf(f.Type.Results.List[0].Type))
	}
	defer func() {
		if p := recover(); p != nil {
			err := fmt.Errorf("%v", p)
			s.failed.CompareAndSwap(nil, &err)
		}
	}()
	s.steps = 0
	return s.call(f, args)
}

// A frame is a call: its variables by their object. Decl is a variable's only place.
type frame struct {
	*policy
	vars   map[types.Object]any
	result any
}

// How a statement ended.
type flow uint8

const (
	next flow = iota
	broke
	continued
	returned
)

func (s *policy) call(f *ast.FuncDecl, args []any) any {
	if s.depth++; s.depth > mostDepth {
		panic(s.errorf(f, "calls of calls, deeper than %d", mostDepth))
	}
	defer func() { s.depth-- }()
	fr := &frame{policy: s, vars: make(map[types.Object]any)}
	if f.Recv != nil && len(f.Recv.List[0].Names) > 0 {
		fr.vars[s.info.Defs[f.Recv.List[0].Names[0]]] = s.state
	}
	i := 0
	for _, list := range f.Type.Params.List {
		for _, name := range list.Names {
			fr.vars[s.info.Defs[name]] = args[i]
			i++
		}
	}
	fr.block(f.Body.List)
	return fr.result
}

func (f *frame) fail(at ast.Node, text string) { panic(f.errorf(at, "%s", text)) }

func (f *frame) block(list []ast.Stmt) flow {
	for _, st := range list {
		if how := f.run(st); how != next {
			return how
		}
	}
	return next
}

const (
	mostSteps = 1_000_000
	mostDepth = 100
)

func (f *frame) run(st ast.Stmt) flow {
	if f.steps++; f.steps > mostSteps {
		f.fail(st, "it takes more than a million steps")
	}
	switch st := st.(type) {
	case *ast.BlockStmt:
		return f.block(st.List)
	case *ast.ReturnStmt:
		if len(st.Results) > 1 {
			f.fail(st, "more than one result does not run here")
		}
		if len(st.Results) == 1 {
			f.result = copied(f.eval(st.Results[0]))
		}
		return returned
	case *ast.IfStmt:
		if st.Init != nil {
			f.run(st.Init)
		}
		if f.eval(st.Cond).(bool) {
			return f.run(st.Body)
		}
		if st.Else != nil {
			return f.run(st.Else)
		}
	case *ast.ForStmt:
		return f.loop(st)
	case *ast.SwitchStmt:
		return f.choose(st)
	case *ast.AssignStmt:
		f.assign(st)
	case *ast.IncDecStmt:
		op := token.ADD
		if st.Tok == token.DEC {
			op = token.SUB
		}
		one := any(int64(1))
		if _, ok := f.eval(st.X).(float64); ok {
			one = 1.0
		}
		f.set(st.X, convert(operate(f, st, op, f.eval(st.X), one), f.typeOf(st.X)))
	case *ast.ExprStmt:
		f.eval(st.X)
	case *ast.DeclStmt:
		f.declare(st.Decl.(*ast.GenDecl))
	case *ast.BranchStmt:
		if st.Tok == token.BREAK {
			return broke
		}
		return continued
	}
	return next
}

func (f *frame) loop(st *ast.ForStmt) flow {
	if st.Init != nil {
		f.run(st.Init)
	}
	for st.Cond == nil || f.eval(st.Cond).(bool) {
		switch how := f.run(st.Body); how {
		case broke:
			return next
		case returned:
			return how
		}
		if st.Post != nil {
			f.run(st.Post)
		}
	}
	return next
}

func (f *frame) choose(st *ast.SwitchStmt) flow {
	if st.Init != nil {
		f.run(st.Init)
	}
	var tag any = true
	if st.Tag != nil {
		tag = f.eval(st.Tag)
	}
	var usual *ast.CaseClause
	for _, c := range st.Body.List {
		clause := c.(*ast.CaseClause)
		if clause.List == nil {
			usual = clause
		}
		for _, x := range clause.List {
			if f.eval(x) == tag {
				return unbroken(f.block(clause.Body))
			}
		}
	}
	if usual != nil {
		return unbroken(f.block(usual.Body))
	}
	return next
}

func unbroken(how flow) flow {
	if how == broke {
		return next
	}
	return how
}

func (f *frame) declare(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		v, ok := spec.(*ast.ValueSpec)
		if !ok || d.Tok == token.CONST {
			continue
		}
		for i, name := range v.Names {
			value := zero(f.info.Defs[name].Type())
			if len(v.Values) > i {
				value = copied(f.eval(v.Values[i]))
			}
			f.vars[f.info.Defs[name]] = value
		}
	}
}

func (f *frame) assign(st *ast.AssignStmt) {
	if len(st.Lhs) != len(st.Rhs) {
		f.fail(st, "more than one result does not run here")
	}
	values := make([]any, len(st.Rhs))
	for i, x := range st.Rhs {
		values[i] = copied(f.eval(x))
		if op, ok := assigning[st.Tok]; ok {
			values[i] = convert(operate(f, st, op, f.eval(st.Lhs[i]), values[i]), f.typeOf(st.Lhs[i]))
		}
	}
	for i, to := range st.Lhs {
		f.set(to, values[i])
	}
}

var assigning = map[token.Token]token.Token{
	token.ADD_ASSIGN: token.ADD, token.SUB_ASSIGN: token.SUB, token.MUL_ASSIGN: token.MUL, token.QUO_ASSIGN: token.QUO, token.REM_ASSIGN: token.REM,
}

func (f *frame) set(to ast.Expr, value any) {
	switch to := to.(type) {
	case *ast.ParenExpr:
		f.set(to.X, value)
	case *ast.Ident:
		if to.Name == "_" {
			return
		}
		o := f.info.Defs[to]
		if o == nil {
			o = f.info.Uses[to]
		}
		if _, local := f.vars[o]; !local && f.info.Defs[to] == nil {
			f.fail(to, "a variable of the package does not run here: make it a field of the policy")
		}
		f.vars[o] = value
	case *ast.SelectorExpr:
		f.eval(to.X).(fields)[to.Sel.Name] = value
	}
}

func (f *frame) typeOf(x ast.Expr) types.Type { return f.info.TypeOf(x) }

func (f *frame) eval(x ast.Expr) any {
	if c := f.info.Types[x].Value; c != nil {
		return constantOf(c, f.typeOf(x))
	}
	switch x := x.(type) {
	case *ast.ParenExpr:
		return f.eval(x.X)
	case *ast.Ident:
		if v, ok := f.vars[f.info.Uses[x]]; ok {
			return v
		}
		f.fail(x, "a variable of the package does not run here: make it a field of the policy")
	case *ast.SelectorExpr:
		if of, ok := f.eval(x.X).(fields); ok {
			return of[x.Sel.Name]
		}
		f.fail(x, "this does not run here")
	case *ast.UnaryExpr:
		return f.unary(x)
	case *ast.BinaryExpr:
		return f.binary(x)
	case *ast.CompositeLit:
		return f.literal(x)
	case *ast.CallExpr:
		return f.calls(x)
	}
	f.fail(x, "this does not run here")
	return nil
}

func (f *frame) unary(x *ast.UnaryExpr) any {
	switch v := f.eval(x.X).(type) {
	case bool:
		return !v
	case float64:
		if x.Op == token.SUB {
			return -v
		}
		return v
	case int64:
		switch x.Op {
		case token.SUB:
			return convert(-v, f.typeOf(x))
		case token.XOR:
			return convert(^v, f.typeOf(x))
		}
		return v
	}
	f.fail(x, "this does not run here")
	return nil
}

func (f *frame) binary(x *ast.BinaryExpr) any {
	switch x.Op {
	case token.LAND:
		return f.eval(x.X).(bool) && f.eval(x.Y).(bool)
	case token.LOR:
		return f.eval(x.X).(bool) || f.eval(x.Y).(bool)
	}
	return convert(operate(f, x, x.Op, f.eval(x.X), f.eval(x.Y)), f.typeOf(x))
}

func (f *frame) literal(x *ast.CompositeLit) any {
	t, ok := f.typeOf(x).Underlying().(*types.Struct)
	if !ok {
		f.fail(x, "this does not run here")
	}
	out := zero(t).(fields)
	for i, e := range x.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			out[kv.Key.(*ast.Ident).Name] = copied(f.eval(kv.Value))
		} else {
			out[t.Field(i).Name()] = copied(f.eval(e))
		}
	}
	return out
}

// calls runs a conversion, a builtin, a function of the file or one of those known.
func (f *frame) calls(x *ast.CallExpr) any {
	if f.info.Types[x.Fun].IsType() {
		return convert(f.eval(x.Args[0]), f.typeOf(x))
	}
	if f.steps++; f.steps > mostSteps {
		f.fail(x, "it takes more than a million steps")
	}
	args := make([]any, len(x.Args))
	for i, a := range x.Args {
		args[i] = copied(f.eval(a))
	}
	switch fun := x.Fun.(type) {
	case *ast.Ident:
		switch o := f.info.Uses[fun].(type) {
		case *types.Builtin:
			if v, ok := extreme(o.Name(), args); ok {
				return convert(v, f.typeOf(x))
			}
		case *types.Func:
			if decl := f.funcs[o]; decl != nil {
				return f.call(decl, args)
			}
		}
	case *ast.SelectorExpr:
		if sel := f.info.Selections[fun]; sel != nil {
			return f.methodOf(fun, args)
		}
		if o := f.info.Uses[fun.Sel]; o.Pkg() != nil && o.Pkg().Path() == "math" {
			return mathematics[o.Name()](args[0].(float64))
		}
	}
	f.fail(x, "this call does not run here")
	return nil
}

func (f *frame) methodOf(fun *ast.SelectorExpr, args []any) any {
	switch of := f.eval(fun.X).(type) {
	case int64:
		if fun.Sel.Name == "Seconds" {
			return time.Duration(of).Seconds()
		}
	case fields:
		if decl := f.methods[fun.Sel.Name]; decl != nil {
			return f.call(decl, args)
		}
		live, ok := of["Live"].(int64)
		if !ok {
			break
		}
		s := pressure.Sample{Live: live, Limit: of["Limit"].(int64)}
		switch fun.Sel.Name {
		case "Pressure":
			return s.Pressure()
		case "Headroom":
			return s.Headroom()
		}
	}
	f.fail(fun, "this call does not run here")
	return nil
}

// mathematics has the functions of package math that are known.
var mathematics = map[string]func(float64) float64{"Sqrt": math.Sqrt, "Exp": math.Exp, "Log": math.Log, "Abs": math.Abs}
