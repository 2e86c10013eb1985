package pool

import (
	"fmt"
	"reflect"
	"slices"
)

// adapter is an [Array] of any type of elements.
type adapter interface {
	adaptTo(p *Pool, stream uint32) (moved any, err error)
	Free()
}

func (a Array[T]) adaptTo(p *Pool, stream uint32) (any, error) { return a.Clone(p, stream) }

// Adapt returns a copy of value in which every [Array] is a copy in the pool, for
// work of stream: it moves a model to a device, or back, and keeps its shape. It
// finds arrays in the fields of structs, in Go arrays, slices, maps and behind
// pointers, at any depth; slices, maps and what pointers point to are copied where
// there are arrays in them, and shared where there are none. What occurs twice is
// copied twice.
//
// Adapt fails, and frees what it has made, with the error of [Array.Clone], and if
// a field with an array in it is not exported. Values that point to themselves are
// not for Adapt.
func Adapt[S any](p *Pool, value S, stream uint32) (S, error) {
	m := adaptation{pool: p, stream: stream}
	to := reflect.New(reflect.TypeFor[S]()).Elem()
	to.Set(reflect.ValueOf(&value).Elem())
	if err := m.move(to, ""); err != nil {
		for _, a := range m.made {
			a.Free()
		}
		var none S
		return none, err
	}
	return to.Interface().(S), nil
}

// An adaptation is one call of Adapt.
type adaptation struct {
	pool   *Pool
	stream uint32
	made   []adapter
}

// move replaces the arrays in v, which can be set, by copies. Path says where v is.
func (m *adaptation) move(v reflect.Value, path string) error {
	if !holdsArrays(v.Type(), nil) {
		return nil
	}
	if !v.CanSet() {
		return fmt.Errorf("pool: adapt: field %s is not exported and holds an array", path)
	}
	if a, ok := v.Interface().(adapter); ok && v.Kind() == reflect.Struct {
		moved, err := a.adaptTo(m.pool, m.stream)
		if err != nil {
			return fmt.Errorf("pool: adapt: field %s: %w", path, err)
		}
		m.made = append(m.made, moved.(adapter))
		v.Set(reflect.ValueOf(moved))
		return nil
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if err := m.move(v.Field(i), path+"."+v.Type().Field(i).Name); err != nil {
				return err
			}
		}
	case reflect.Pointer:
		return m.replace(v, path)
	case reflect.Slice:
		if v.IsNil() {
			return nil
		}
		fresh := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(fresh, v)
		v.Set(fresh)
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			if err := m.move(v.Index(i), fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		return m.moveMap(v, path)
	}
	return nil
}

// replace makes pointer v point to a moved copy.
func (m *adaptation) replace(v reflect.Value, path string) error {
	if v.IsNil() {
		return nil
	}
	to := reflect.New(v.Type().Elem())
	to.Elem().Set(v.Elem())
	v.Set(to)
	return m.move(to.Elem(), path)
}

func (m *adaptation) moveMap(v reflect.Value, path string) error {
	if v.IsNil() {
		return nil
	}
	fresh := reflect.MakeMapWithSize(v.Type(), v.Len())
	for it := v.MapRange(); it.Next(); {
		element := reflect.New(v.Type().Elem()).Elem()
		element.Set(it.Value())
		if err := m.move(element, fmt.Sprintf("%s[%v]", path, it.Key())); err != nil {
			return err
		}
		fresh.SetMapIndex(it.Key(), element)
	}
	v.Set(fresh)
	return nil
}

// holdsArrays reports whether values of a type may hold an Array. Seen are the
// types that are being looked at.
func holdsArrays(t reflect.Type, seen []reflect.Type) bool {
	if slices.Contains(seen, t) {
		return false
	}
	seen = append(seen, t)
	if t.Kind() == reflect.Struct && t.Implements(reflect.TypeFor[adapter]()) {
		return true
	}
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if holdsArrays(t.Field(i).Type, seen) {
				return true
			}
		}
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return holdsArrays(t.Elem(), seen)
	}
	return false
}
