package gc

import (
	"fmt"
	"reflect"
	"sync"
	"unsafe"

	"github.com/eagergc/eagergc/pressure"
)

// MaxBytes is the most that one owner may hold, 64 TiB.
const MaxBytes = 1 << 46

func checkBytes(what string, bytes int64) {
	if bytes < 0 || bytes > MaxBytes {
		panic(fmt.Sprintf("gc: %s with %d bytes: want 0 to %d (%v)", what, bytes, int64(MaxBytes), pressure.Bytes(MaxBytes)))
	}
}

// checkOwner panics if owner is not the only one at its address, or bytes are out
// of range.
func checkOwner[T any](what string, owner *T, bytes int64) {
	checkBytes(what, bytes)
	if owner == nil {
		panic("gc: " + what + " with a nil owner: it has to be an object that can die")
	}
	if unsafe.Sizeof(*owner) < tiny && !hasPointers(reflect.TypeFor[T]()) {
		panic(fmt.Sprintf("gc: %s with an owner of type %v, which has no identity: objects below %d bytes without pointers share memory, and one keeps the others alive. Add a pointer, or make it larger",
			what, reflect.TypeFor[T](), tiny))
	}
}

// tiny is the size below which the Go runtime puts objects without pointers
// together (maxTinySize, runtime/malloc.go of Go 1.26).
const tiny = 16

var pointerful sync.Map // reflect.Type -> bool

func hasPointers(t reflect.Type) bool {
	if known, ok := pointerful.Load(t); ok {
		return known.(bool)
	}
	has := findPointer(t)
	pointerful.Store(t, has)
	return has
}

func findPointer(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return t.Len() > 0 && findPointer(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if findPointer(t.Field(i).Type) {
				return true
			}
		}
		return false
	case reflect.Chan, reflect.Func, reflect.Interface, reflect.Map, reflect.Pointer, reflect.Slice, reflect.String, reflect.UnsafePointer:
		return true
	}
	return false
}

// checkRelease panics if release is nil, or if arg or what release has captured
// first is the owner. It sees no more than that: what hides deeper shows in
// [Collector.Survivors].
func checkRelease[T, A any](owner *T, release func(A), arg *A) {
	if release == nil {
		panic("gc: Own with a nil release: nobody could give the memory back")
	}
	from := uintptr(unsafe.Pointer(owner))
	to := from + max(unsafe.Sizeof(*owner), 1)
	for n := uintptr(0); n+unsafe.Sizeof(from) <= unsafe.Sizeof(*arg); n += unsafe.Sizeof(from) {
		if p := *(*uintptr)(unsafe.Add(unsafe.Pointer(arg), n)); p >= from && p < to {
			panic(fmt.Sprintf("gc: Own with an argument of type %v that refers to the owner: it would keep the owner alive for ever. Pass what the release needs instead, such as the C pointer", reflect.TypeFor[A]()))
		}
	}
	// A func is a pointer to its code pointer and, behind that, what it has
	// captured; of a method value that is the receiver. Behind a func that has
	// captured nothing lies other data of the program's.
	closure := *(**[2]uintptr)(unsafe.Pointer(&release))
	if p := closure[1]; p >= from && p < to {
		panic("gc: Own with a release that refers to the owner, a method value of it or a closure: it would keep the owner alive for ever. Write a function that takes what it needs as its argument")
	}
}
