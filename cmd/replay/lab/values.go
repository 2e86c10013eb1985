//go:build js && wasm

package main

import (
	"fmt"
	"iter"
	"reflect"
	"strings"
	"syscall/js"
)

// fill sets v from a value of the page. Fields have the names that they have in JSON;
// what the page leaves out stays as it is. It panics where the page has another type.
func fill(v reflect.Value, from js.Value) {
	if from.IsUndefined() || from.IsNull() {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for f, name := range fields(v) {
			if name == "" {
				fill(f, from)
			} else {
				fill(f, from.Get(name))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), from.Length(), from.Length()))
		for i := range v.Len() {
			fill(v.Index(i), from.Index(i))
		}
	case reflect.String:
		v.SetString(from.String())
	case reflect.Bool:
		v.SetBool(from.Bool())
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(from.Float()))
	case reflect.Float64:
		v.SetFloat(from.Float())
	default:
		panic(fmt.Sprintf("no %v comes from a page", v.Type()))
	}
}

// value returns v as a value of the page.
func value(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Struct:
		object := js.Global().Get("Object").New() // its fields keep their order: a table's columns
		into(object, v)
		return object
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.IsNil() {
			return nil
		}
		list := make([]any, v.Len())
		for i := range list {
			list[i] = value(v.Index(i))
		}
		return list
	case reflect.Map:
		object := make(map[string]any)
		for one := v.MapRange(); one.Next(); {
			object[one.Key().String()] = value(one.Value())
		}
		return object
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return value(v.Elem())
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return v.Bool()
	case reflect.Int, reflect.Int64:
		return float64(v.Int())
	case reflect.Float64:
		return v.Float()
	}
	panic(fmt.Sprintf("no %v goes to a page", v.Type()))
}

func into(object js.Value, v reflect.Value) {
	for f, name := range fields(v) {
		if name == "" {
			into(object, reflect.Indirect(f))
		} else {
			object.Set(name, value(f))
		}
	}
}

// fields yields the fields of a struct and their names in JSON; those of an embedded
// one are the struct's own, and the name is empty.
func fields(v reflect.Value) iter.Seq2[reflect.Value, string] {
	return func(yield func(reflect.Value, string) bool) {
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" || name == "" && !f.Anonymous || option == "omitempty" && empty(v.Field(i)) {
				continue
			}
			if !yield(v.Field(i), name) {
				return
			}
		}
	}
}

func empty(v reflect.Value) bool { return v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0 }
