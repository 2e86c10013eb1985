package a

import "runtime"

// A local variable that holds a new object is checked, too.

func newImage() *Image {
	i := &Image{native: _Cfunc_open()}
	runtime.SetFinalizer(i, releaseImage)
	return i
}

func openImage(n int) (*Image, error) {
	if n < 0 {
		return nil, nil
	}
	return newImage(), nil
}

func _Cfunc_open() *_Ctype_struct_image { return nil }

func LocalNew() int    { i := newImage(); return int(_Cfunc_image(i.native)) }               // want `C.image gets memory of i, whose finalizer may run during the call: put runtime.KeepAlive\(i\) after it$`
func LocalGetter() int { i := newImage(); return int(_Cfunc_image(i.some(1))) }              // want `C.image gets memory of i`
func LocalMethod() int { i := newImage(); i.set(1); return int(_Cfunc_image(i.native)) }     // want `C.image gets memory of i`
func LocalEarly()      { i := newImage(); runtime.KeepAlive(i); _Cfunc_image(i.native) }     // want `C.image gets memory of i`
func LocalLater()      { var i *Image; i = newImage(); p := i.native; _Cfunc_image(p) }      // want `C.image gets memory of i`
func LocalTwo()        { i, j := newImage(), newImage(); _Cfunc_image(j.native); i.done(0) } // want `C.image gets memory of j`

func LocalError() (int, error) {
	i, err := openImage(1)
	if err != nil {
		return 0, err
	}
	if i == nil {
		return tuple(1, i), nil
	}
	return int(_Cfunc_image(i.native)), nil // want `C.image gets memory of i`
}

func LocalLiteral() {
	i := &Image{native: _Cfunc_open()}
	_Cfunc_image(i.native)
	runtime.SetFinalizer(i, releaseImage)
	_Cfunc_image(i.native) // want `C.image gets memory of i`
}

func LocalBuiltin() {
	i := new(Image)
	runtime.AddCleanup(i, func(p *_Ctype_struct_image) { _Cfunc_image(p) }, i.native)
	_Cfunc_image(i.native) // want `C.image gets memory of i`
}

// Each round of a loop has its own variable.
func LocalLoop() {
	for range 3 {
		i := newImage()
		_Cfunc_image(i.native) // want `C.image gets memory of i`
	}
	for range 3 {
		var i *Image
		i = newImage()
		_Cfunc_image(i.native) // want `C.image gets memory of i`
	}
}

// Those are alive.

var global *Image

func LocalDeferred()         { i := newImage(); defer i.done(1); _Cfunc_image(i.native) }
func LocalClosure()          { i := newImage(); defer func() { i.number++ }(); _Cfunc_image(i.native) }
func LocalReturned() any     { i := newImage(); _Cfunc_image(i.native); return i }
func LocalStored()           { i := newImage(); _Cfunc_image(i.native); global = i }
func LocalPassed()           { i := newImage(); _Cfunc_image(i.native); with(i, 1) }
func LocalCaptured() any     { i := newImage(); _Cfunc_image(i.native); return func() { i.number++ } }
func LocalAppended() any     { i := newImage(); _Cfunc_image(i.native); return append([]*Image{}, i) }
func LocalSet()              { i := newImage(); _Cfunc_image(i.native); i.number = 1 }
func LocalNamed() (i *Image) { i = newImage(); _Cfunc_image(i.native); return }

func LocalOutside() {
	i := newImage()
	for n := range 3 {
		i.number = n
		_Cfunc_image(i.native)
	}
}

// Something else may keep those alive.

func LocalStoredBefore()          { i := newImage(); global = i; _Cfunc_image(i.native) }
func LocalPassedBefore()          { i := newImage(); with(i, 1); _Cfunc_image(i.native) }
func LocalCapturedBefore()        { i := newImage(); f := func() { i.number++ }; _Cfunc_image(i.native); f() }
func LocalMethodValue()           { i := newImage(); f := i.done; _Cfunc_image(i.native); f(1) }
func LocalStarted()               { i := newImage(); go i.done(1); _Cfunc_image(i.native) }
func LocalStarted2()              { i := newImage(); go func() { i.number++ }(); _Cfunc_image(i.native) }
func LocalAlias(o *Image)         { i := o; _Cfunc_image(i.native) }
func LocalGlobal()                { i := global; _Cfunc_image(i.native) }
func LocalAddress(o Image)        { i := &o; _Cfunc_image(i.native) }
func LocalReceived(c chan *Image) { i := <-c; _Cfunc_image(i.native) }
func LocalRange(all []*Image) {
	for _, i := range all {
		_Cfunc_image(i.native)
	}
}
func LocalEither(o *Image) {
	i := newImage()
	if o != nil {
		i = o
	}
	_Cfunc_image(i.native)
}

func cachedImage() *Image {
	if global == nil {
		global = newImage()
	}
	return global
}

func cachedNew() *Image            { i := newImage(); global = i; return i }
func cachedError() (*Image, error) { return cachedImage(), nil }

func cachedTuple(n int) (*Image, error) {
	if n > 0 {
		return newImage(), nil
	}
	return cachedError()
}

func LocalCached()  { i := cachedImage(); _Cfunc_image(i.native) }
func LocalCached2() { i := cachedNew(); _Cfunc_image(i.native) }
func LocalCached3() { i, _ := cachedTuple(1); _Cfunc_image(i.native) }
func LocalForeign() { i := foreign(); _Cfunc_image(i.native) }
func foreign() *Image

// This object has no finalizer.
func LocalView(p *_Ctype_struct_image) { i := &Image{native: p}; _Cfunc_image(i.native) }

// A variable may be declared, and an assignment to _ is no use.
func LocalVar() _Ctype_int {
	var i = newImage()
	var p = i.native
	return _Cfunc_image(p) // want `C.image gets memory of i, whose finalizer may run during the call`
}

func LocalTyped() _Ctype_int {
	var i *Image = newImage()
	var p *_Ctype_struct_image = i.native
	n := _Cfunc_image(p) // want `C.image gets memory of i`
	_ = i
	return n
}

func LocalDeclared(c bool) _Ctype_int {
	var i *Image
	if c {
		i = newImage()
	}
	return _Cfunc_image(i.native) // want `C.image gets memory of i`
}
