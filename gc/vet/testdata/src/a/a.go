// Package a is a binding as cgo leaves it.
package a

import (
	"runtime"
	"sync"
	"unsafe"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pressure"
)

type _Ctype_struct_surface struct{ data *_Ctype_uchar }
type _Ctype_uchar uint8
type _Ctype_int int32

func _Cfunc_new() *_Ctype_struct_surface                       { return nil }
func _Cfunc_free(*_Ctype_struct_surface)                       {}
func _Cfunc_width(*_Ctype_struct_surface) _Ctype_int           { return 0 }
func _Cfunc_use(*_Ctype_struct_surface, int)                   {}
func _Cfunc_both(_, _ *_Ctype_struct_surface) _Ctype_int       { return 0 }
func _Cfunc_raw(unsafe.Pointer) _Ctype_int                     { return 0 }
func _Cfunc_number(int) _Ctype_int                             { return 0 }
func _C2func_width(*_Ctype_struct_surface) (_Ctype_int, error) { return 0, nil }

type Surface struct {
	native *_Ctype_struct_surface
	shared *_Ctype_struct_surface // the finalizer leaves it
	buffer [16]byte
	size   int
	mu     *sync.Mutex
	other  *sync.Mutex
	own    sync.Mutex
	shares *sync.RWMutex
}

func New() *Surface {
	s := &Surface{native: _Cfunc_new()}
	runtime.SetFinalizer(s, (*Surface).free)
	return s
}

func (s *Surface) free() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shares.Lock()
	defer s.shares.Unlock()
	_Cfunc_free(s.native)
}

func (s *Surface) c() *_Ctype_struct_surface { return s.native }
func (s *Surface) Width() int                { return int(_Cfunc_width(s.native)) }                               // want `C.width gets memory of s`
func (s *Surface) Checked() error            { _, err := _C2func_width(s.native); return err }                    // want `C.width gets memory of s`
func (s *Surface) Inner() int                { return int(_Cfunc_raw(unsafe.Pointer(s.native.data))) }            // want `C.raw gets memory of s`
func (s *Surface) Getter() int               { return int(_Cfunc_width(s.c())) }                                  // want `C.width gets memory of s`
func (s *Surface) Local() int                { p := s.native; q := unsafe.Pointer(p); return int(_Cfunc_raw(q)) } // want `C.raw gets memory of s`

func (s *Surface) With(o *Surface) int {
	defer runtime.KeepAlive(s)
	return int(_Cfunc_both(s.native, o.native)) // want `C.both gets memory of o`
}

func (s *Surface) Deferred() int {
	s.other.Lock()
	defer s.other.Unlock()             // read at once: s is not kept
	return int(_Cfunc_width(s.native)) // want `C.width gets memory of s`
}

// Those are safe.

func (s *Surface) Loop() {
	for i := range s.size {
		_Cfunc_use(s.native, i+s.size)
	}
}

func (s *Surface) LoopKeeps() {
	for i := 0; i < 10; i++ {
		_Cfunc_use(s.native, i)
	}
	s.size = 1
}

func (s *Surface) UsedLater() int        { n := int(_Cfunc_width(s.native)); return n + s.size }
func (s *Surface) GoMemory() int         { return int(_Cfunc_raw(unsafe.Pointer(&s.buffer[0]))) }
func (s *Surface) GoMemory2() int        { return int(_Cfunc_raw(unsafe.Pointer(s))) }
func (s *Surface) Number() int           { return int(_Cfunc_number(s.size)) }
func (s *Surface) Shared() int           { return int(_Cfunc_width(s.shared)) }
func (s *Surface) Locked()               { s.mu.Lock(); defer s.mu.Unlock(); _Cfunc_width(s.native) }
func (s *Surface) ReadLocked()           { s.shares.RLock(); defer s.shares.RUnlock(); _Cfunc_width(s.native) }
func (s *Surface) OwnLock()              { s.own.Lock(); defer s.own.Unlock(); _Cfunc_width(s.native) }
func (s *Surface) DeferredClosure()      { defer func() { s.size++ }(); _Cfunc_width(s.native) }
func (s *Surface) Close()                { runtime.SetFinalizer(s, nil); _Cfunc_free(s.native) }
func (s *Surface) Iterator() [2]any      { return [2]any{_Cfunc_width(s.native), s} }
func (s *Surface) Stored()               { s.size = int(_Cfunc_width(s.native)) }
func (s *Surface) Outer() int            { return s.plus(_Cfunc_width(s.native)) }
func (s *Surface) plus(n _Ctype_int) int { return int(n) + s.size }

// A Shape shares its lock with others of its context.
type Shape struct {
	native  *_Ctype_struct_surface
	context *Context
}

type Context struct{ sync.Mutex }

func (c *Context) NewShape(finalizer func(*Shape)) *Shape {
	s := &Shape{_Cfunc_new(), c}
	runtime.SetFinalizer(s, finalizer)
	return s
}

func (c *Context) New() *Shape    { return c.NewShape((*Shape).Destroy) }
func (s *Shape) Destroy()         { s.context.Lock(); defer s.context.Unlock(); _Cfunc_free(s.native) }
func (c *Context) Width(s *Shape) { c.Lock(); defer c.Unlock(); _Cfunc_width(s.native) }
func (s *Shape) Width() int       { return int(_Cfunc_width(s.native)) } // want `C.width gets memory of s`

// A Plain has no finalizer.
type Plain struct{ native *_Ctype_struct_surface }

func (p *Plain) Width() int { return int(_Cfunc_width(p.native)) }

// A Cleaned has a cleanup. An Owned is given to gc.Own, a Counted to pressure.Own.
type (
	Cleaned struct{ native *_Ctype_struct_surface }
	Owned   struct{ native *_Ctype_struct_surface }
	Counted struct{ native *_Ctype_struct_surface }
)

func (c *Cleaned) Width() int { return int(_Cfunc_width(c.native)) } // want `C.width gets memory of c`
func (o *Owned) Width() int   { return int(_Cfunc_width(o.native)) } // want `C.width gets memory of o`
func (c *Counted) Width() int { return int(_Cfunc_width(c.native)) } // want `C.width gets memory of c`

func NewAll(c *gc.Collector, n *pressure.Counter) (*Cleaned, *Owned, *Counted) {
	a, b, d := &Cleaned{_Cfunc_new()}, &Owned{_Cfunc_new()}, &Counted{_Cfunc_new()}
	runtime.AddCleanup(a, func(p *_Ctype_struct_surface) { _Cfunc_free(p) }, a.native)
	gc.Own(c, b, 8, func(p *_Ctype_struct_surface) { _Cfunc_free(p) }, b.native)
	pressure.Own(n, d, 8, func(p *_Ctype_struct_surface) { _Cfunc_free(p) }, d.native)
	return a, b, d
}

// A Pair has a finalizer for each part.
type Pair struct{ left, right *_Ctype_struct_surface }

func NewPair() *Pair {
	p := new(Pair)
	runtime.SetFinalizer(p, func(p *Pair) { _Cfunc_free(p.left) })
	runtime.SetFinalizer(p, func(p *Pair) { _Cfunc_free(p.right) })
	return p
}

func (p *Pair) Left() int  { return int(_Cfunc_width(p.left)) }  // want `C.width gets memory of p`
func (p *Pair) Right() int { return int(_Cfunc_width(p.right)) } // want `C.width gets memory of p`
