package spill

func isClosed(m *mapping) bool { return m.file.Fd() == ^uintptr(0) }
