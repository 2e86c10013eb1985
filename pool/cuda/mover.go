package cuda

// mover copies for the pool to and from memory that the processor cannot address.
// It uses the stream of the array, or the default stream if that one is closed.
type mover struct{ dev *Device }

func (m mover) Upload(to uintptr, from []byte, stream uint32) error {
	return m.on(stream, func(s *Stream) error {
		if staged, err := m.dev.stageUpload(s, to, from); staged || err != nil {
			return err
		}
		return s.Upload(to, from)
	})
}

func (m mover) Download(to []byte, from uintptr, stream uint32) error {
	return m.on(stream, func(s *Stream) error { return s.Download(to, from) })
}

func (m mover) Copy(to, from uintptr, bytes int64, stream uint32) error {
	return m.on(stream, func(s *Stream) error { return s.Copy(to, from, bytes) })
}

func (m mover) Fill(to uintptr, pattern []byte, count int64, stream uint32) error {
	return m.on(stream, func(s *Stream) error { return s.FillPattern(to, pattern, count) })
}

// on calls f with the stream of that number. If that one is closed, on waits until
// its work has ended and calls f with the default stream.
func (m mover) on(stream uint32, f func(*Stream) error) error {
	if s := m.dev.stream(stream); s != nil && !s.closed.Load() {
		return f(s)
	} else if s != nil {
		if err := s.Synchronize(); err != nil {
			return err
		}
	}
	null := m.dev.Default()
	if err := f(null); err != nil {
		return err
	}
	return streamSync(null)
}
