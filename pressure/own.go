package pressure

import (
	"fmt"
	"reflect"
	"runtime"
	"unsafe"
)

// Own counts bytes of memory outside the Go heap, which owner holds, in c. It calls free(arg) some
// time after owner has become unreachable, whether or not the program has a collector. Guarantees
// and the order relative to finalizers are those of [runtime.AddCleanup]. The bytes leave the count
// once free has returned.
//
// To give the memory back earlier, stop the cleanup, free, and count off, with owner alive:
//
//	p.cleanup.Stop()
//	C.free(p.pixels)
//	images.Sub(p.bytes)
//	runtime.KeepAlive(p)
//
// Own panics where AddCleanup does, if free is nil, and if bytes is negative. It also panics if it
// sees that arg or free would keep owner alive for ever. Such an arg is owner or points into it;
// its address as a number does not. Such a free is a method value of owner, or a closure that
// captured owner first.
func Own[T, A any](c *Counter, owner *T, bytes int64, free func(A), arg A) runtime.Cleanup {
	checkOwn(c, owner, bytes, free, &arg)
	cleanup := runtime.AddCleanup(owner, freerOf[A](c), owned[A]{c, bytes, free, arg})
	c.move(1, bytes, unsafe.Pointer(owner))
	runtime.KeepAlive(owner) // or it could be counted off before
	return cleanup
}

// owned is the argument of a cleanup.
type owned[A any] struct {
	counter *Counter
	bytes   int64
	free    func(A)
	arg     A
}

func freeOwned[A any](o owned[A]) {
	o.free(o.arg)
	o.counter.move(-1, -o.bytes, nil)
}

// freerOf returns freeOwned[A]. Making that function value allocates, so the counter keeps the one
// of the first A. Few libraries use more than one A.
func freerOf[A any](c *Counter) func(owned[A]) {
	if first := c.freer.Load(); first == nil {
		f := any(freeOwned[A])
		c.freer.CompareAndSwap(nil, &f)
	} else if f, ok := (*first).(func(owned[A])); ok {
		return f
	}
	return freeOwned[A]
}

func checkOwn[T, A any](c *Counter, owner *T, bytes int64, free func(A), arg *A) {
	if bytes < 0 {
		panic(fmt.Sprintf("pressure: %s: Own of %d bytes", c.name, bytes))
	}
	if free == nil {
		panic(fmt.Sprintf("pressure: %s: Own with a free that is nil", c.name))
	}
	if owner == nil {
		return // AddCleanup panics
	}
	from := uintptr(unsafe.Pointer(owner))
	to := from + max(unsafe.Sizeof(*owner), 1)
	word := unsafe.Sizeof(from)
	for n := uintptr(0); n+word <= unsafe.Sizeof(*arg); n += word {
		if p := *(*uintptr)(unsafe.Add(unsafe.Pointer(arg), n)); p >= from && p < to && isPointer(reflect.TypeFor[A](), n) {
			panic(fmt.Sprintf("pressure: %s: Own with an argument of type %v that refers to the owner, and would keep it alive for ever: pass what free needs instead, such as the C pointer", c.name, reflect.TypeFor[A]()))
		}
	}
	// A func is a pointer to its code pointer and, behind that, to its captured variables; of a
	// method value that is the receiver. Behind a func that has captured nothing lies other data of
	// the program's.
	if p := (*(**[2]uintptr)(unsafe.Pointer(&free)))[1]; p >= from && p < to {
		panic(fmt.Sprintf("pressure: %s: Own with a free that refers to the owner, and would keep it alive for ever: write a function that takes what it needs as its argument", c.name))
	}
}

// isPointer reports whether the garbage collector takes the word at this offset in a t for a
// pointer.
func isPointer(t reflect.Type, at uintptr) bool {
	switch t.Kind() {
	case reflect.Array:
		return isPointer(t.Elem(), at%t.Elem().Size())
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); at-f.Offset < f.Type.Size() {
				return isPointer(f.Type, at-f.Offset)
			}
		}
	case reflect.Interface:
		return at > 0 // behind the type
	case reflect.Chan, reflect.Func, reflect.Map, reflect.Pointer, reflect.Slice, reflect.String, reflect.UnsafePointer:
		return at == 0
	}
	return false
}
