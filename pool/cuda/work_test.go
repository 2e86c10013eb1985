package cuda

// Stamp queues the writing of a pattern that follows from seed over the whole
// words of the memory at addr.
func (w *Work) Stamp(s *Stream, addr uintptr, bytes int64, seed uint32) error {
	return w.launch("stamp", s, addr, bytes, seed)
}

// Verify queues a check for the pattern of [Work.Stamp]: it adds the number of
// words that differ to the 64-bit counter at address wrong.
func (w *Work) Verify(s *Stream, addr uintptr, bytes int64, seed uint32, wrong uintptr) error {
	return w.launch("verify", s, addr, bytes, seed, wrong)
}

func (w *Work) launch(kernel string, s *Stream, addr uintptr, bytes int64, more ...any) error {
	k, err := w.module.Kernel(kernel)
	if err != nil {
		return err
	}
	n := uint64(bytes / 4)
	grid := uint32(min(max((n+255)/256, 1), 2048)) // fills a large GPU
	return Launch(k, s, Dim{X: grid}, Dim{X: 256}, append([]any{addr, n}, more...)...)
}
