package gc

import (
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"strings"
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

// checkOwner panics if owner may share its address with other objects, or if bytes are out of range.
func checkOwner[T any](what string, owner *T, bytes int64) {
	checkBytes(what, bytes)
	if owner == nil {
		panic("gc: " + what + " with a nil owner: it has to be an object that can die")
	}
	if unsafe.Sizeof(*owner) < tiny && len(pointersOf(nil, reflect.TypeFor[T](), 0)) == 0 {
		panic(fmt.Sprintf("gc: %s with an owner of type %v, which has no identity: objects below %d bytes without pointers share memory, and one keeps the others alive. Add a pointer, or make it larger",
			what, reflect.TypeFor[T](), tiny))
	}
}

// Go's runtime combines smaller objects without pointers (maxTinySize in runtime/malloc.go).
const tiny = 16

// checkRelease panics if release is nil, if arg points into the owner, or if release is a method
// value of the owner. A closure whose first captured word is the owner's address is logged, because
// that word may be a number. Deeper references show in [Snapshot].Survivors.
func checkRelease[T, A any](c *Collector, owner *T, release func(A), arg *A, pointers []uintptr) {
	if release == nil {
		panic("gc: Own with a nil release, which cannot give the memory back. If a finalizer or a cleanup of the owner does that, take Count")
	}
	from := uintptr(unsafe.Pointer(owner))
	to := from + max(unsafe.Sizeof(*owner), 1)
	for _, at := range pointers {
		if p := *(*uintptr)(unsafe.Add(unsafe.Pointer(arg), at)); p >= from && p < to {
			panic(fmt.Sprintf("gc: Own with an argument of type %v that refers to the owner: it would keep the owner alive for ever. Pass what the release needs instead, such as the C pointer", reflect.TypeFor[A]()))
		}
	}
	// A func value points to a code pointer and, after that, what it has captured, such as the receiver
	// of a method value. If it has captured nothing, other data of the program follows.
	closure := *(**[2]uintptr)(unsafe.Pointer(&release))
	if p := closure[1]; p < from || p >= to {
		return
	}
	name := runtime.FuncForPC(closure[0]).Name()
	if strings.HasSuffix(name, "-fm") {
		panic("gc: Own with a release that is a method value of the owner: it would keep the owner alive for ever. Write a function that takes what it needs as its argument")
	}
	c.misuse(logCaptured, slog.String("release", name))
}

// checkLimit warns of a limit above the memory of the machine.
func (c *Collector) checkLimit(bytes int64) {
	if bytes == 0 {
		return
	}
	if info, err := pressure.HostMemory(); err == nil && bytes > info.Total {
		c.misuse(logLimit, slog.Int64("limit_bytes", bytes), slog.Int64("total_bytes", info.Total))
	}
}

// strictVariable is the environment variable that turns strict mode on, which is for tests. In
// strict mode visible misuse panics, and no panic is contained.
const strictVariable = "EAGERGC_STRICT"

// misuse warns of a mistake of the program, in slog.Default if there is no log. In strict mode it
// panics. The caller does not hold mu.
func (c *Collector) misuse(text string, attrs ...slog.Attr) {
	if c.strict {
		panic(text + ": " + slog.GroupValue(attrs...).String())
	}
	c.log.Say(slog.LevelWarn, true, text, attrs...)
}

// pointersOf appends the offsets of the pointers in a t at base.
func pointersOf(at []uintptr, t reflect.Type, base uintptr) []uintptr {
	switch t.Kind() {
	case reflect.Array:
		for i := 0; i < t.Len() && len(pointersOf(nil, t.Elem(), 0)) > 0; i++ {
			at = pointersOf(at, t.Elem(), base+uintptr(i)*t.Elem().Size())
		}
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			at = pointersOf(at, f.Type, base+f.Offset)
		}
	case reflect.Interface:
		at = append(at, base+unsafe.Sizeof(base)) // after the type word
	case reflect.Chan, reflect.Func, reflect.Map, reflect.Pointer, reflect.Slice, reflect.String, reflect.UnsafePointer:
		at = append(at, base)
	}
	return at
}
