package pool

// A tree orders the free pieces of one shelf by size, then by address. It is a
// treap. Its links are in the headers, so it allocates nothing. The zero value is
// empty. The best fit for a size is the smallest piece that is large enough, and
// among equal ones the piece at the lowest address: so segments at high addresses
// become free and can be released.
type tree struct{ root uint32 }

// rank is the priority of a piece in the treap: its number, scrambled.
func rank(i uint32) uint32 { return i * 0x9e3779b1 }

func (h *header) before(size int64, addr uintptr) bool {
	return h.size < size || h.size == size && h.addr < addr
}

// bestFit returns the best fit for size, or 0.
func (t tree) bestFit(hs *headers, size int64) (best uint32) {
	for i := t.root; i != 0; {
		if h := hs.at(i); h.size >= size {
			best, i = i, h.left
		} else {
			i = h.right
		}
	}
	return best
}

func (t *tree) insert(hs *headers, n uint32) {
	h := hs.at(n)
	link := &t.root
	for *link != 0 && rank(*link) >= rank(n) {
		if at := hs.at(*link); at.before(h.size, h.addr) {
			link = &at.right
		} else {
			link = &at.left
		}
	}
	rest := *link
	*link = n
	// Split the rest in what comes before n and what comes after.
	less, more := &h.left, &h.right
	for rest != 0 {
		if at := hs.at(rest); at.before(h.size, h.addr) {
			*less, less, rest = rest, &at.right, at.right
		} else {
			*more, more, rest = rest, &at.left, at.left
		}
	}
	*less, *more = 0, 0
}

func (t *tree) remove(hs *headers, n uint32) {
	h := hs.at(n)
	link := &t.root
	for *link != n {
		if at := hs.at(*link); at.before(h.size, h.addr) {
			link = &at.right
		} else {
			link = &at.left
		}
	}
	// Merge the children in n's place.
	less, more := h.left, h.right
	for less != 0 && more != 0 {
		if rank(less) >= rank(more) {
			at := hs.at(less)
			*link, link, less = less, &at.right, at.right
		} else {
			at := hs.at(more)
			*link, link, more = more, &at.left, at.left
		}
	}
	*link = less | more
}

// each calls f for every piece, in order, until f returns false.
func (t tree) each(hs *headers, f func(uint32) bool) { walk(hs, t.root, f) }

func walk(hs *headers, i uint32, f func(uint32) bool) bool {
	if i == 0 {
		return true
	}
	h := hs.at(i)
	return walk(hs, h.left, f) && f(i) && walk(hs, h.right, f)
}

// from calls f for every piece of at least size, in order.
func (t tree) from(hs *headers, size int64, f func(uint32)) { walkFrom(hs, t.root, size, f) }

func walkFrom(hs *headers, i uint32, size int64, f func(uint32)) {
	if i == 0 {
		return
	}
	h := hs.at(i)
	if h.size >= size {
		walkFrom(hs, h.left, size, f)
		f(i)
	}
	walkFrom(hs, h.right, size, f)
}

// largest returns the size of the largest piece, 0 if there is none.
func (t tree) largest(hs *headers) (size int64) {
	for i := t.root; i != 0; i = hs.at(i).right {
		size = hs.at(i).size
	}
	return size
}
