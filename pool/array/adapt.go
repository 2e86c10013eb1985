package array

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/eagergc/eagergc/pool"
)

// Adapt returns from as a To whose arrays are in the pool. It moves a model to a device, or back,
// and keeps its shape. Where the two types differ it uploads, downloads or converts:
//
//	from                  To                   becomes
//	Array[T]              Array[T]             a copy in the pool
//	[]T                   Array[T]             a copy in the pool
//	Array[T]              []T                  a copy in the Go heap
//	float64, in either    Array[float32]       a copy in the pool, rounded
//	values without array  the same             shared
//
// So a wrapper that is generic in its storage keeps its type: from Diagonal[[]float32] to
// Diagonal[Array[float32]]. Adapt looks into structs, whose fields must have the same names in the
// same order, into Go arrays, slices and maps, and behind pointers and interfaces, at any depth. A
// value behind an interface keeps its type. What occurs twice is copied twice. Arrays that can be
// reached from themselves are not for Adapt.
//
// Adapt fails with the error of [From], and where the types do not correspond. It also fails where a
// field that holds an array is not exported. If it fails, it frees the arrays that it has made.
func Adapt[To, From any](p *pool.Pool, from From, on ...On) (To, error) {
	to, _, err := adapt[To](p, from, on)
	return to, err
}

// anyArray is an Array of any type of elements.
type anyArray interface {
	Free()
	toSlice() (reflect.Value, error)
	adapted(a *adaptation, from reflect.Value) (any, error)
}

// isArray reports whether t is an Array. A struct that embeds one has its methods, but is none.
func isArray(t reflect.Type) bool {
	return t.PkgPath() == packagePath && strings.HasPrefix(t.Name(), "Array[")
}

var packagePath = reflect.TypeFor[memory]().PkgPath()

func (a Array[T]) toSlice() (reflect.Value, error) {
	s, err := a.ToSlice()
	return reflect.ValueOf(s), err
}

// adapted returns an array of the same type with the elements of an array or a slice.
func (Array[T]) adapted(a *adaptation, from reflect.Value) (any, error) {
	if same, ok := from.Interface().(Array[T]); ok {
		return same.Clone(a.pool, a.on...)
	}
	elements := from
	if isArray(from.Type()) {
		var err error
		if elements, err = from.Interface().(anyArray).toSlice(); err != nil {
			return nil, err
		}
	}
	slice := reflect.TypeFor[[]T]()
	if wide, ok := elements.Interface().([]float64); ok && slice == reflect.TypeFor[[]float32]() {
		narrow := make([]float32, len(wide))
		for i, v := range wide {
			narrow[i] = float32(v)
		}
		elements = reflect.ValueOf(narrow)
	}
	if elements.Kind() != reflect.Slice || !elements.Type().ConvertibleTo(slice) {
		return nil, fmt.Errorf("cannot make %T of %v", Array[T]{}, from.Type())
	}
	return From(a.pool, elements.Convert(slice).Interface().([]T), a.on...)
}

type adaptation struct {
	pool *pool.Pool
	on   []On
	made []anyArray
}

func adapt[To, From any](p *pool.Pool, from From, on []On) (To, []anyArray, error) {
	a := adaptation{pool: p, on: on}
	to := new(To)
	if err := a.move(reflect.ValueOf(to).Elem(), reflect.ValueOf(&from).Elem(), ""); err != nil {
		free(a.made)
		return *new(To), nil, fmt.Errorf("array: adapt: %w", err)
	}
	return *to, a.made, nil
}

func free(made []anyArray) {
	for _, a := range made {
		a.Free()
	}
}

// move sets to from from. Path says where they are.
func (a *adaptation) move(to, from reflect.Value, path string) error {
	if to.Type() == from.Type() && !holds(from, map[visit]bool{}) {
		to.Set(from)
		return nil
	}
	if isArray(to.Type()) {
		x, err := to.Interface().(anyArray).adapted(a, from)
		if err != nil {
			return fmt.Errorf("%s: %w", at(path), err)
		}
		a.made = append(a.made, x.(anyArray))
		to.Set(reflect.ValueOf(x))
		return nil
	}
	if isArray(from.Type()) {
		s, err := from.Interface().(anyArray).toSlice()
		if err == nil && s.Type() != to.Type() {
			err = fmt.Errorf("cannot make %v of %v", to.Type(), from.Type())
		}
		if err != nil {
			return fmt.Errorf("%s: %w", at(path), err)
		}
		to.Set(s)
		return nil
	}
	if to.Kind() != from.Kind() {
		return fmt.Errorf("%s: cannot make %v of %v", at(path), to.Type(), from.Type())
	}
	switch to.Kind() {
	case reflect.Struct:
		return a.moveFields(to, from, path)
	case reflect.Array, reflect.Slice:
		return a.moveElements(to, from, path)
	case reflect.Map:
		return a.moveMap(to, from, path)
	case reflect.Pointer:
		if from.IsNil() {
			return nil
		}
		to.Set(reflect.New(to.Type().Elem()))
		return a.move(to.Elem(), from.Elem(), path)
	case reflect.Interface:
		if from.IsNil() {
			return nil
		}
		x := reflect.New(from.Elem().Type()).Elem()
		if !x.Type().AssignableTo(to.Type()) {
			break
		}
		if err := a.move(x, from.Elem(), path); err != nil {
			return err
		}
		to.Set(x)
		return nil
	}
	return fmt.Errorf("%s: cannot make %v of %v", at(path), to.Type(), from.Type())
}

func at(path string) string {
	if path == "" {
		return "value"
	}
	return "field " + path
}

func (a *adaptation) moveFields(to, from reflect.Value, path string) error {
	if !from.CanAddr() { // for access to fields that are not exported
		x := reflect.New(from.Type()).Elem()
		x.Set(from)
		from = x
	}
	if to.NumField() != from.NumField() {
		return fmt.Errorf("%s: cannot make %v of %v", at(path), to.Type(), from.Type())
	}
	for i := range to.NumField() {
		f, x := to.Type().Field(i), from.Field(i)
		if from.Type().Field(i).Name != f.Name {
			return fmt.Errorf("%s: field %d of %v is not %s", at(path), i, from.Type(), f.Name)
		}
		if f.IsExported() {
			if err := a.move(to.Field(i), x, path+"."+f.Name); err != nil {
				return err
			}
		} else if x.Type() != f.Type || holds(x, map[visit]bool{}) {
			return fmt.Errorf("%s is not exported", at(path+"."+f.Name))
		} else {
			reflect.NewAt(f.Type, to.Field(i).Addr().UnsafePointer()).Elem().Set(reflect.NewAt(f.Type, x.Addr().UnsafePointer()).Elem())
		}
	}
	return nil
}

func (a *adaptation) moveElements(to, from reflect.Value, path string) error {
	if to.Kind() == reflect.Slice {
		if from.IsNil() {
			return nil
		}
		to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
	}
	if to.Len() != from.Len() {
		return fmt.Errorf("%s: cannot make %v of %v", at(path), to.Type(), from.Type())
	}
	for i := range to.Len() {
		if err := a.move(to.Index(i), from.Index(i), fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	return nil
}

func (a *adaptation) moveMap(to, from reflect.Value, path string) error {
	if to.Type().Key() != from.Type().Key() {
		return fmt.Errorf("%s: cannot make %v of %v", at(path), to.Type(), from.Type())
	}
	if from.IsNil() {
		return nil
	}
	to.Set(reflect.MakeMapWithSize(to.Type(), from.Len()))
	for it := from.MapRange(); it.Next(); {
		element := reflect.New(to.Type().Elem()).Elem()
		if err := a.move(element, it.Value(), fmt.Sprintf("%s[%v]", path, it.Key())); err != nil {
			return err
		}
		to.SetMapIndex(it.Key(), element)
	}
	return nil
}

// A visit is a pointer, map or slice that was followed.
type visit struct {
	at uintptr
	n  int // elements of a slice
	of reflect.Type
}

// holds reports whether an Array can be reached from v without passing a visit in seen again.
func holds(v reflect.Value, seen map[visit]bool) bool {
	if isPlain(v.Type()) {
		return false
	}
	k := v.Kind()
	if k == reflect.Pointer || k == reflect.Map || k == reflect.Slice {
		x := visit{at: v.Pointer(), of: v.Type()}
		if k == reflect.Slice {
			x.n = v.Len()
		}
		if v.IsNil() || seen[x] {
			return false
		}
		seen[x] = true
	}
	switch k {
	case reflect.Pointer:
		return holds(v.Elem(), seen)
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if holds(it.Value(), seen) {
				return true
			}
		}
	case reflect.Struct:
		found := isArray(v.Type())
		for i := 0; i < v.NumField() && !found; i++ {
			found = holds(v.Field(i), seen)
		}
		return found
	case reflect.Interface:
		return !v.IsNil() && holds(v.Elem(), seen)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if holds(v.Index(i), seen) {
				return true
			}
		}
	}
	return false
}
