//go:build ignore

// Makes a snapshot of SIZE bytes as torch.cuda.memory._dump_snapshot writes it, with
// STACK frames for every entry, one of 300 stacks: go run make-snapshot.go FILE SIZE STACK
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
)

type pickle struct {
	*bufio.Writer
	n, memo int64
	texts   map[string]int64
}

func (p *pickle) op(b ...byte) { p.Write(b); p.n += int64(len(b)) }
func (p *pickle) put()         { p.op(0x94); p.memo++ }
func (p *pickle) get(k int64) {
	if k < 256 {
		p.op('h', byte(k))
		return
	}
	p.op(binary.LittleEndian.AppendUint32([]byte{'j'}, uint32(k))...)
}
func (p *pickle) text(s string) {
	if k, ok := p.texts[s]; ok {
		p.get(k)
		return
	}
	p.texts[s] = p.memo
	p.op(0x8c, byte(len(s)))
	p.op([]byte(s)...)
	p.put()
}
func (p *pickle) num(n int64) {
	switch {
	case n >= 0 && n < 256:
		p.op('K', byte(n))
	case n >= 0 && n < 1<<31:
		p.op(binary.LittleEndian.AppendUint32([]byte{'J'}, uint32(n))...)
	default:
		p.op(binary.LittleEndian.AppendUint64([]byte{0x8a, 8}, uint64(n))...)
	}
}

func main() {
	size, _ := strconv.ParseInt(os.Args[2], 10, 64)
	stack, _ := strconv.Atoi(os.Args[3])
	f, _ := os.Create(os.Args[1])
	p := &pickle{Writer: bufio.NewWriterSize(f, 1<<20), texts: map[string]int64{}}
	r := rand.New(rand.NewPCG(1, 2))
	p.op(0x80, 4, '}')
	p.put()
	p.op('(')
	p.text("segments")
	p.op(']')
	p.put()
	p.text("device_traces")
	p.op(']')
	p.put()
	p.op('(', ']')
	p.put()
	var frames []int64
	kind := 0
	frame := func(k int) {
		if at := kind*7 + k; at < len(frames) {
			p.get(frames[at])
			return
		}
		frames = append(frames, p.memo)
		p.op('}')
		p.put()
		p.op('(')
		p.text("filename")
		p.text(fmt.Sprintf("/usr/lib/python3/site-packages/torch/nn/modules/module%d.py", len(frames)/20))
		p.text("line")
		p.num(int64(len(frames)))
		p.text("name")
		p.text(fmt.Sprintf("forward%d", len(frames)))
		p.op('u')
	}
	us := int64(1790000000000000)
	entries, events := 0, 0
	entry := func(action string, addr, size int64) {
		p.op('}')
		p.put()
		p.op('(')
		for _, kv := range []any{"action", action, "addr", addr, "size", size, "stream", int64(0), "time_us", us, "compile_context", "N/A", "user_metadata", ""} {
			switch v := kv.(type) {
			case string:
				p.text(v)
			case int64:
				p.num(v)
			}
		}
		if stack > 0 {
			kind = min(r.IntN(300), len(frames)/7)
			p.text("frames")
			p.op(']')
			p.put()
			p.op('(')
			for k := range stack {
				frame(k)
			}
			p.op('e')
		}
		p.op('u')
		entries++
	}
	type obj struct{ a, z int64 }
	var live []obj
	var free []int64
	for i := range int64(20000) {
		free = append(free, 0x7f0000000000+i<<20)
	}
	for p.n < size {
		p.op('(')
		for range 500 {
			us += 1 + r.Int64N(8)
			events++
			if len(live) == 0 || len(free) > 0 && r.IntN(2) == 0 {
				i := r.IntN(len(free))
				o := obj{free[i], []int64{512, 4096, 65536, 1 << 20}[r.IntN(4)]}
				free[i] = free[len(free)-1]
				free = free[:len(free)-1]
				live = append(live, o)
				entry("alloc", o.a, o.z)
				continue
			}
			i := r.IntN(len(live))
			o := live[i]
			live[i] = live[len(live)-1]
			live = live[:len(live)-1]
			free = append(free, o.a)
			entry("free_requested", o.a, o.z)
			entry("free_completed", o.a, o.z)
		}
		p.op('e')
	}
	p.op('e', 'u', '.')
	p.Flush()
	f.Close()
	fmt.Println(p.n, "bytes", entries, "entries", events, "events")
}
