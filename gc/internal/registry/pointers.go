package registry

import (
	"reflect"
	"sync"
	"unsafe"
)

var pointers sync.Map // reflect.Type -> []uintptr

// Pointers returns the offsets of the pointers in a value of type t. It is safe for concurrent use.
func Pointers(t reflect.Type) []uintptr {
	if known, ok := pointers.Load(t); ok {
		return known.([]uintptr)
	}
	at := findPointers(nil, t, 0)
	pointers.Store(t, at)
	return at
}

// findPointers appends the offsets of the pointers in a t at base.
func findPointers(at []uintptr, t reflect.Type, base uintptr) []uintptr {
	switch t.Kind() {
	case reflect.Array:
		for i := 0; i < t.Len() && len(findPointers(nil, t.Elem(), 0)) > 0; i++ {
			at = findPointers(at, t.Elem(), base+uintptr(i)*t.Elem().Size())
		}
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			at = findPointers(at, f.Type, base+f.Offset)
		}
	case reflect.Interface:
		at = append(at, base+unsafe.Sizeof(base)) // after the type word
	case reflect.Chan, reflect.Func, reflect.Map, reflect.Pointer, reflect.Slice, reflect.String, reflect.UnsafePointer:
		at = append(at, base)
	}
	return at
}
