package hand

import (
	"cmp"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"math"
	"slices"
)

// zero is the zero value of a type.
func zero(t types.Type) any {
	switch t := t.Underlying().(type) {
	case *types.Struct:
		out := make(fields, t.NumFields())
		for f := range t.Fields() {
			out[f.Name()] = zero(f.Type())
		}
		return out
	case *types.Basic:
		switch info := t.Info(); {
		case info&types.IsBoolean != 0:
			return false
		case info&types.IsString != 0:
			return ""
		case info&types.IsFloat != 0:
			return 0.0
		}
	}
	return int64(0)
}

// copied keeps structs from being shared: they are values.
func copied(v any) any {
	if s, ok := v.(fields); ok {
		s = maps.Clone(s)
		for name, f := range s {
			s[name] = copied(f)
		}
		return s
	}
	return v
}

func constantOf(c constant.Value, t types.Type) any {
	switch b, _ := t.Underlying().(*types.Basic); {
	case c.Kind() == constant.Bool:
		return constant.BoolVal(c)
	case c.Kind() == constant.String:
		return constant.StringVal(c)
	case b != nil && b.Info()&types.IsFloat != 0:
		v, _ := constant.Float64Val(constant.ToFloat(c))
		return v
	default:
		c = constant.ToInt(c)
		if v, exact := constant.Int64Val(c); exact {
			return v
		}
		v, _ := constant.Uint64Val(c)
		return int64(v)
	}
}

// convert makes a number of a type of another, and keeps the result of an operation
// within its type.
func convert(v any, t types.Type) any {
	b, ok := t.Underlying().(*types.Basic)
	if !ok {
		return v
	}
	switch n := v.(type) {
	case int64:
		if b.Info()&types.IsFloat != 0 {
			return float64(n)
		}
		return narrow(b, n)
	case float64:
		if b.Info()&types.IsInteger != 0 {
			return narrow(b, int64(n))
		}
		if b.Kind() == types.Float32 {
			return float64(float32(n))
		}
	}
	return v
}

func narrow(b *types.Basic, n int64) int64 {
	switch b.Kind() {
	case types.Int8:
		return int64(int8(n))
	case types.Int16:
		return int64(int16(n))
	case types.Int32:
		return int64(int32(n))
	case types.Uint8:
		return int64(uint8(n))
	case types.Uint16:
		return int64(uint16(n))
	case types.Uint32:
		return int64(uint32(n))
	}
	return n
}

// extreme is min and max.
func extreme(name string, args []any) (any, bool) {
	switch args[0].(type) {
	case int64:
		return extremeOf[int64](name, args)
	case float64:
		return extremeOf[float64](name, args)
	case string:
		return extremeOf[string](name, args)
	}
	return nil, false
}

func extremeOf[T cmp.Ordered](name string, args []any) (any, bool) {
	all := make([]T, len(args))
	for i, v := range args {
		x, ok := v.(T)
		if !ok {
			return nil, false
		}
		all[i] = x
	}
	switch name {
	case "min":
		return slices.Min(all), true
	case "max":
		return slices.Max(all), true
	}
	return nil, false
}

// operate does an operation of two values of one kind.
func operate(f *frame, at ast.Node, op token.Token, x, y any) any {
	switch a := x.(type) {
	case int64:
		return f.integers(at, op, a, y.(int64))
	case float64:
		return floats(op, a, y.(float64))
	case string:
		b := y.(string)
		if op == token.ADD {
			return a + b
		}
		return compare(op, a, b)
	case bool:
		return (a == y.(bool)) == (op == token.EQL)
	}
	f.fail(at, "this does not run here")
	return nil
}

func compare[T int64 | float64 | string](op token.Token, a, b T) any {
	switch op {
	case token.EQL:
		return a == b
	case token.NEQ:
		return a != b
	case token.LSS:
		return a < b
	case token.LEQ:
		return a <= b
	case token.GTR:
		return a > b
	}
	return a >= b
}

func (f *frame) integers(at ast.Node, op token.Token, a, b int64) any {
	switch op {
	case token.ADD:
		return a + b
	case token.SUB:
		return a - b
	case token.MUL:
		return a * b
	case token.QUO, token.REM:
		if b == 0 {
			f.fail(at, "division by zero")
		}
		if op == token.QUO {
			return a / b
		}
		return a % b
	case token.AND:
		return a & b
	case token.OR:
		return a | b
	case token.XOR:
		return a ^ b
	case token.SHL, token.SHR:
		if b < 0 || b > math.MaxInt8 {
			f.fail(at, "a shift by so much does not run here")
		}
		if op == token.SHL {
			return a << b
		}
		return a >> b
	}
	return compare(op, a, b)
}

func floats(op token.Token, a, b float64) any {
	switch op {
	case token.ADD:
		return a + b
	case token.SUB:
		return a - b
	case token.MUL:
		return a * b
	case token.QUO:
		return a / b
	}
	return compare(op, a, b)
}
