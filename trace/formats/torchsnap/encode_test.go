package torchsnap

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// A dict is a Python dict with its items in order.
type dict []item

type item struct {
	key   string
	value any
}

type list []any

// raw is pickle code that pushes one value.
type raw string

// pickled writes v as Python's protocol 2 does, without a memo.
func pickled(v any) []byte {
	var b bytes.Buffer
	b.WriteString("\x80\x02")
	encode(&b, v)
	b.WriteByte('.')
	return b.Bytes()
}

func encode(b *bytes.Buffer, v any) {
	switch v := v.(type) {
	case dict:
		b.WriteString("}(")
		for _, it := range v {
			encode(b, it.key)
			encode(b, it.value)
		}
		b.WriteByte('u')
	case list:
		b.WriteString("](")
		for _, x := range v {
			encode(b, x)
		}
		b.WriteByte('e')
	case string:
		b.WriteByte('X')
		binary.Write(b, binary.LittleEndian, uint32(len(v)))
		b.WriteString(v)
	case int:
		b.WriteString("\x8a\x08")
		binary.Write(b, binary.LittleEndian, int64(v))
	case raw:
		b.WriteString(string(v))
	default:
		panic(fmt.Sprintf("%T", v))
	}
}

// entryOf is a trace entry as PyTorch writes it.
func entryOf(name string, addr, size, us any) dict {
	return dict{{"action", name}, {"addr", addr}, {"size", size}, {"stream", 0}, {"time_us", us}}
}

// snap is a snapshot of one device.
func snap(segments list, entries ...any) dict {
	return dict{{"segments", segments}, {"device_traces", list{list(entries)}}}
}

func segmentOf(device, address, total int, blocks ...any) dict {
	return dict{{"device", device}, {"address", address}, {"total_size", total}, {"stream", 0}, {"blocks", list(blocks)}}
}

func blockOf(address, size int, state string) dict {
	return dict{{"address", address}, {"size", (size + 511) / 512 * 512}, {"requested_size", size}, {"state", state}}
}
