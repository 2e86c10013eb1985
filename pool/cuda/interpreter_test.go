package cuda

// The plain interpreter of the oracle's programs. It knows nothing of this package: work is done
// when it is named, in program order, on slices.

const cells = 32 // elements that a step touches

// A plain array has some windows of cells each, whose contents are known or not.
type plainArray struct {
	data [][]uint32 // by window; nil: unknown
}

func newPlainArray(windows int) *plainArray { return &plainArray{data: make([][]uint32, windows)} }

// A place is a window of an array.
type place struct {
	array  *plainArray
	window int
}

func (p place) get() []uint32 { return p.array.data[p.window] }

// set takes what f makes of each element, or leaves the window unknown.
func (p place) set(known bool, f func(i int) uint32) {
	if !known {
		p.array.data[p.window] = nil
		return
	}
	made := make([]uint32, cells)
	for i := range made {
		made[i] = f(i)
	}
	p.array.data[p.window] = made
}

// plainWork is work that can be done again.
type plainWork func()

// plainEach makes each element of a place of those of another one.
func plainEach(to, from place, f func(x []uint32, i int) uint32) plainWork {
	return func() {
		x := from.get()
		to.set(x != nil, func(i int) uint32 { return f(x, i) })
	}
}

func plainMix(out, in place, k uint32) plainWork {
	return plainEach(out, in, func(x []uint32, i int) uint32 { return x[cells-1-i]*5 + k })
}

func plainCopy(to, from place) plainWork {
	return plainEach(to, from, func(x []uint32, i int) uint32 { return x[i] })
}

func plainWrite(to place, data []uint32) plainWork {
	data = append([]uint32(nil), data...)
	return func() { to.set(true, func(i int) uint32 { return data[i] }) }
}

func plainFill(to place, v uint32) plainWork {
	return func() { to.set(true, func(int) uint32 { return v }) }
}

// plainShift copies the first three quarters of a window over the last.
func plainShift(a place) plainWork {
	return plainEach(a, a, func(x []uint32, i int) uint32 {
		if i < cells/4 {
			return x[i]
		}
		return x[i-cells/4]
	})
}

func plainSetOne(a place, at int, v uint32) plainWork {
	return plainEach(a, a, func(x []uint32, i int) uint32 {
		if i == at {
			return v
		}
		return x[i]
	})
}

// A plainGraph is work that is done at each launch.
type plainGraph []plainWork

func (g plainGraph) launch() {
	for _, work := range g {
		work()
	}
}
