package cuda

// Stamp queues the writing of a pattern that follows from seed over the whole
// words of the memory at addr.
func (w *Work) Stamp(s *Stream, addr uintptr, bytes int64, seed uint32) error {
	n := uint64(bytes / 4)
	return w.launch(w.stamp, s, grid(n), 256, func(a *Args) { a.Ptr(addr).Uint64(n).Uint32(seed) })
}

// Verify queues a check for the pattern of [Work.Stamp]: it adds the number of
// words that differ to the 64-bit counter at address wrong.
func (w *Work) Verify(s *Stream, addr uintptr, bytes int64, seed uint32, wrong uintptr) error {
	n := uint64(bytes / 4)
	return w.launch(w.verify, s, grid(n), 256, func(a *Args) { a.Ptr(addr).Uint64(n).Uint32(seed).Ptr(wrong) })
}

// grid is a number of blocks that fills a large GPU without exceeding n threads
// by much.
func grid(n uint64) uint32 { return uint32(min(max((n+255)/256, 1), 2048)) }
