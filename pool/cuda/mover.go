package cuda

// mover copies for the pool to and from memory that the processor cannot address.
// It uses the stream of the array, or the default stream if that one is closed or of
// another device, which may have no access to the memory.
type mover struct{ dev *Device }

func (m mover) Upload(to uintptr, from []byte, stream uint32) error {
	return m.on(stream, func(s *Stream) error {
		if staged, err := m.dev.stageUpload(s, to, from); staged || err != nil {
			return err
		}
		return s.upload(to, from)
	})
}

func (m mover) Download(to []byte, from uintptr, stream uint32) error {
	return m.on(stream, func(s *Stream) error { return s.download(to, from) })
}

func (m mover) Copy(to, from uintptr, bytes int64, stream uint32) error {
	return m.on(stream, func(s *Stream) error { return s.Copy(to, from, bytes) })
}

func (m mover) Fill(to uintptr, pattern []byte, count int64, stream uint32) error {
	return m.on(stream, func(s *Stream) error { return s.fillPattern(to, pattern, count) })
}

// on calls f with the stream of that number. If that one is closed or of another device, on
// calls f with the default stream, behind the work of that one, and waits.
func (m mover) on(stream uint32, f func(*Stream) error) error {
	if s := m.dev.stream(stream); s != nil && !s.closed.Load() && s.dev.index == m.dev.index {
		return f(s)
	}
	null := m.dev.Default()
	if err := null.after(stream); err != nil {
		return err
	}
	if err := f(null); err != nil {
		return err
	}
	return streamSync(null)
}
