// Package zstd lets package trace read native files that are packed with zstd, and pack
// those that it writes. A program imports it for that:
//
//	import _ "github.com/eagergc/eagergc/trace/formats/zstd"
package zstd

import (
	"github.com/klauspost/compress/zstd"

	"github.com/eagergc/eagergc/trace"
)

func init() {
	pack, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err) // of options that are right
	}
	unpack, err := zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderLowmem(true))
	if err != nil {
		panic(err)
	}
	trace.UseZstd(trace.Codec{
		Compress:   func(dst, data []byte) []byte { return pack.EncodeAll(data, dst) },
		Decompress: func(dst, frame []byte) ([]byte, error) { return unpack.DecodeAll(frame, dst) },
	})
}
