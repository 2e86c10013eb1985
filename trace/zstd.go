package trace

import "sync/atomic"

// A Codec packs and unpacks the columns of native files as frames of zstd. Its
// functions must be safe for concurrent use.
type Codec struct {
	Compress   func(dst, data []byte) []byte           // appends a frame to dst; nil: files are written as they are
	Decompress func(dst, frame []byte) ([]byte, error) // appends what the frame holds, at most to the capacity of dst
}

var zstd atomic.Pointer[Codec]

// UseZstd makes this process read files that are packed with zstd, and pack its own,
// to about a tenth. The package trace/formats/zstd calls it when it is
// imported.
func UseZstd(c Codec) { zstd.Store(&c) }
