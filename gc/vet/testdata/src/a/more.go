package a

import (
	"runtime"
	"sync"
	"unsafe"

	"github.com/eagergc/eagergc/gc"
)

type _Ctype_struct_image struct {
	data  *_Ctype_uchar
	rows  [4]*_Ctype_uchar
	count _Ctype_int
}
type _Ctype_pixels = struct{ first *_Ctype_uchar }

func _Cfunc_mixed(_, _ unsafe.Pointer) _Ctype_int       { return 0 }
func _Cfunc_value(_Ctype_struct_image) _Ctype_int       { return 0 }
func _Cfunc_image(*_Ctype_struct_image) _Ctype_int      { return 0 }
func _Cfunc_pixels(*_Ctype_pixels) *_Ctype_struct_image { return nil }

type Native = _Ctype_struct_image

// An Image has a finalizer that cannot be read, so that each C pointer in it may be freed.
type Image struct {
	native *_Ctype_struct_image
	alias  *Native
	pixels *_Ctype_pixels
	all    **_Ctype_struct_image
	parts  **Part
	bytes  *byte
	slice  []byte
	array  [2]struct{ cell [4]byte }
	part   *Part
	get    func() *_Ctype_struct_image
	number int
}

type Part struct{ n int }

var releaseImage func(*Image)

func NewImage() (i *Image, t TileP, p *Public) {
	i, t, p = new(Image), new(Tile), new(Public)
	runtime.SetFinalizer(i, releaseImage)
	runtime.SetFinalizer(t, (*Tile).free)
	runtime.SetFinalizer(p, (*Public).Free)
	return i, t, p
}

// What C gets is C memory of the object.

func (i *Image) Alias() int   { return int(_Cfunc_image(i.alias)) }                              // want `C.image gets memory of i`
func (i *Image) Unnamed()     { _Cfunc_pixels(i.pixels) }                                        // want `C.pixels gets memory of i`
func (i *Image) Result() int  { return int(_Cfunc_image(_Cfunc_pixels(i.pixels))) }              // want `C.pixels gets memory of i`
func (i *Image) First() int   { return int(_Cfunc_image(*i.all)) }                               // want `C.image gets memory of i`
func (i *Image) Row() int     { return int(_Cfunc_raw(unsafe.Pointer(i.native.rows[1]))) }       // want `C.raw gets memory of i`
func (i *Image) Address() int { return int(_Cfunc_raw(unsafe.Pointer(&i.native.data))) }         // want `C.raw gets memory of i`
func (i *Image) Star() int    { return int((_Cfunc_raw)(unsafe.Pointer((*(i.native)).data))) }   // want `C.raw gets memory of i`
func (i *Image) Slice() int   { return int(_Cfunc_mixed(ptr(&i.slice[0]), ptr(i.native.data))) } // want `C.mixed gets memory of i`
func (i *Image) Part() int    { return int(_Cfunc_mixed(ptr(&i.part.n), ptr(i.native.data))) }   // want `C.mixed gets memory of i`

type ptr = unsafe.Pointer

// It is passed on by other variables, in any order.
func (i *Image) Variables() int {
	var p, q *_Ctype_struct_image
	for n := range 2 {
		if q = p; n > 0 {
			return int(_Cfunc_image(q)) // want `C.image gets memory of i`
		}
		i.number, p = n, i.native
	}
	return 0
}

// A getter returns it on some path.
func (i *Image) some(n int) *_Ctype_struct_image {
	if n == 0 {
		return nil
	}
	if n == 1 {
		return i.native
	}
	return nil
}

func (i *Image) named() (p *_Ctype_struct_image) { p = i.native; return }
func (i *Image) again() *_Ctype_struct_image     { return i.some(1) }
func (i *Image) inGo() *Part                     { return (*Part)(unsafe.Pointer(i.native)) }
func (i *Image) Some() int                       { return int(_Cfunc_image(i.some(1))) } // want `C.image gets memory of i`

// The analyzer does not see through other functions, and other memory is not C's.
func (i *Image) Named() int      { return int(_Cfunc_image(i.named())) }
func (i *Image) Again() int      { return int(_Cfunc_image(i.again())) }
func (i *Image) Function() int   { return int(_Cfunc_image(i.get())) }
func (i *Image) InGo() int       { return int(_Cfunc_raw(unsafe.Pointer(i.inGo()))) }
func (i *Image) Parts() int      { return int(_Cfunc_raw(unsafe.Pointer(i.parts))) }
func (i *Image) Bytes() int      { return int(_Cfunc_raw(unsafe.Pointer(i.bytes))) }
func (i *Image) Value() int      { return int(_Cfunc_value(*i.native)) }
func (i *Image) Count() int      { return int(_Cfunc_number(int(i.native.count))) }
func (i *Image) Array() int      { return int(_Cfunc_mixed(ptr(i.native), ptr(&i.array[1].cell[2]))) }
func (i *Image) Both() int       { return int(_Cfunc_mixed(ptr(i), ptr(i.native))) }
func (i *Image) Later() func()   { return func() { _Cfunc_image(i.native) } }
func (i *Image) Later2() func()  { return func() { func() { _Cfunc_image(i.native) }() } }
func (_ *Image) Blank() int      { return min(1, 2) }
func (*Image) Unnamed2(_ *Image) {}
func external(i *Image) int

func (i *Image) Others(o *Plain) { n, p := i.number, o.native; _Cfunc_use(p, n) }

// The first call of a function is reported that nothing keeps alive.

func (i *Image) Twice() int {
	_Cfunc_image(i.native)
	return int(_Cfunc_image(i.native)) // want `C.image gets memory of i, whose finalizer may run during the call: put runtime.KeepAlive\(i\) after it$`
}

func (i *Image) Either(b bool) int {
	if b {
		return func(n _Ctype_int) int { return int(n) }(_Cfunc_image(i.native)) // want `C.image gets memory of i`
	}
	return int(_Cfunc_image(i.native))
}

func (i *Image) Wrapped() {
	n := func() _Ctype_int {
		_cgo0 := i.native
		return _Cfunc_image(_cgo0) // want `C.image gets memory of i`
	}()
	_ = n
}

func (i *Image) Early()              { runtime.KeepAlive(i); _Cfunc_image(i.native) }          // want `C.image gets memory of i`
func (i *Image) CloseOther(o *Image) { runtime.SetFinalizer(o, nil); _Cfunc_image(i.native) }  // want `C.image gets memory of i`
func (i *Image) EmptyClosure()       { defer func() {}(); _Cfunc_image(i.native) }             // want `C.image gets memory of i`
func (i *Image) DeferredNumber()     { defer _Cfunc_number(i.number); _Cfunc_image(i.native) } // want `C.image gets memory of i`
func (i *Image) Index(all *[9]int)   { all[_Cfunc_image(i.native)] = 1 }                       // want `C.image gets memory of i`
func (i *Image) DeferredMethod()     { defer (i).done(1); _Cfunc_image(i.native) }
func (i *Image) DeferredArgument()   { defer func(*Image) {}(i); _Cfunc_image(i.native) }
func (i *Image) done(_ int)          { i.number++ }
func (i *Image) set(n _Ctype_int)    { i.number = int(n) }
func (i *Image) Before()             { with(i, _Cfunc_image(i.native)) }
func with(_ *Image, _ _Ctype_int)    {}
func (i *Image) Select(c chan *int)  { *<-c, i.number = int(_Cfunc_image(i.native)), 1 }

// Callers keep the object, or one of them does not.

func (i *Image) kept(n int) int          { return n + int(_Cfunc_image(i.native)) }
func (i *Image) UsesKept() int           { defer runtime.KeepAlive(i); return (i).kept(1) }
func (i *Image) nested(n int) int        { return n + int(_Cfunc_image(i.native)) } // want `C.image gets memory of i`
func (i *Image) UsesNested(o *Image) int { return i.nested(o.nested(1)) + i.number }
func (i *Image) mixed() int              { return int(_Cfunc_image(i.native)) } // want `C.image gets memory of i`
func (i *Image) UsesMixed(o *Image) int  { n := o.mixed(); return n + i.mixed() + i.number }
func (i *Image) made() int               { return int(_Cfunc_image(i.native)) } // want `C.image gets memory of i`
func (i *Image) UsesMade() int           { return new(Image).made() + i.made() + i.number }
func (i *Image) unused() int             { return int(_Cfunc_image(i.native)) } // want `C.image gets memory of i`
func first(i *Image) int                 { return int(_Cfunc_image(i.native)) }
func (i *Image) UsesFirst() int          { return first(i) + i.number }
func (i *Image) UsesMany() int           { return many(1, (i), new(Image)) + i.number }
func tuple(n int, i *Image) int          { return n + int(_Cfunc_image(i.native)) } // want `C.image gets memory of i`
func two() (int, *Image)                 { return 1, new(Image) }
func UsesTuple() int                     { return tuple(two()) }

func many(_ int, i, j *Image) int { defer runtime.KeepAlive(j); return int(_Cfunc_image(i.native)) }

// Locks are known by their type in the package, others by their path.

type Tile struct {
	native *_Ctype_struct_image
	shared *Shared
	mu     *sync.Mutex
	guard  Guard
}

type (
	Shared struct{ mu *sync.Mutex }
	Guard  struct{ sync.Mutex }
	TileP  = *Tile
	TileA  = Tile
)

func (t *Tile) free() {
	t.shared.mu.Lock()
	t.guard.Lock()
	_Cfunc_image(t.native)
}

func (t *Tile) Path() int       { t.shared.mu.Lock(); return int(_Cfunc_image(t.native)) }
func (t *Tile) Typed() int      { t.guard.Lock(); return int(_Cfunc_image(t.native)) }
func (g *Guard) Of(t *Tile)     { g.Lock(); _Cfunc_image(t.native) }
func (t *Tile) Other() int      { t.mu.Lock(); return int(_Cfunc_image(t.native)) }          // want `C.image gets memory of t`
func (t *Tile) Unlocks() int    { t.shared.mu.Unlock(); return int(_Cfunc_image(t.native)) } // want `C.image gets memory of t`
func (t *TileA) Alias() int     { return int(_Cfunc_image(t.native)) }                       // want `C.image gets memory of t`
func Pointer(t TileP) int       { return int(_Cfunc_image(t.native)) }                       // want `C.image gets memory of t`
func (c *Context) Tile(t *Tile) { c.Lock(); _Cfunc_image(t.native) }                         // want `C.image gets memory of t`
func (g *Guard) Late(t *Tile)   { _Cfunc_image(t.native); g.Lock() }                         // want `C.image gets memory of t`

// Finalizers are read as deep as three calls, and all that callers pass.

type Deep struct{ first, second, third, fourth, fifth, tail *_Ctype_struct_image }

func newDeep(finalizer func(*Deep), tail *_Ctype_struct_image) *Deep {
	d := &Deep{tail: tail}
	runtime.SetFinalizer(d, finalizer)
	return d
}

func NewDeep() (*Deep, *Deep) {
	return newDeep(func(d *Deep) { d.free(1) }, nil), newDeep(freeTail, nil)
}

func (d *Deep) free(int)    { _Cfunc_image(d.first); free2(d); free4(nil, d) }
func freeTail(d *Deep)      { _Cfunc_image(d.tail) }
func free2(d *Deep)         { _Cfunc_image(d.second); d.free3() }
func (d *Deep) free3()      { _Cfunc_image(d.third); free4(d, nil); d.free3() }
func free4(d, _ *Deep)      { _Cfunc_image(d.fourth) }
func (d *Deep) First() int  { return int(_Cfunc_image(d.first)) }  // want `C.image gets memory of d`
func (d *Deep) Second() int { return int(_Cfunc_image(d.second)) } // want `C.image gets memory of d`
func (d *Deep) Third() int  { return int(_Cfunc_image(d.third)) }  // want `C.image gets memory of d`
func (d *Deep) Fourth() int { return int(_Cfunc_image(d.fourth)) }
func (d *Deep) Fifth() int  { return int(_Cfunc_image(d.fifth)) }
func (d *Deep) Tail() int   { return int(_Cfunc_image(d.tail)) } // want `C.image gets memory of d`

// An Outer's finalizer gives another object a finalizer.
type (
	Outer struct{ native *_Ctype_struct_image }
	Inner struct{ native *_Ctype_struct_image }
)

func NewOuter() *Outer {
	o := new(Outer)
	runtime.SetFinalizer(o, func(o *Outer) {
		runtime.SetFinalizer(&Inner{o.native}, func(*Inner) {})
	})
	return o
}

func (o *Outer) Image() int { return int(_Cfunc_image(o.native)) } // want `C.image gets memory of o`
func (i *Inner) Image() int { return int(_Cfunc_image(i.native)) } // want `C.image gets memory of i`

// A Public has a finalizer that users may call.
type Public struct{ native *_Ctype_struct_image }

func (p *Public) Free() { _Cfunc_image(p.native) } // want `C.image gets memory of p`

// These are no finalizers of the package's types.

func (p *Plain) Close() { runtime.SetFinalizer(p, nil); SetFinalizer(p, nil) }

func SetFinalizer(*Plain, func(*Plain)) {}

func Foreign(c *gc.Collector) int {
	runtime.SetFinalizer(c, func(*gc.Collector) {})
	return int(_Cfunc_raw(c.Native))
}
