//go:build js && wasm

// Command lab is the simulator in a web page: it runs in a worker of the browser
// and answers the page's questions, see package session. `replay lab` builds it and
// puts it into a page.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"
	"syscall/js"

	"github.com/eagergc/eagergc/cmd/replay/lab/session"
	"github.com/eagergc/eagergc/sim"
)

func main() {
	debug.SetGCPercent(50) // a page never gives its memory back: garbage costs more than collections
	s := new(session.Session)
	js.Global().Set("eagergc", js.FuncOf(func(_ js.Value, args []js.Value) any {
		return answer(s, args[0].String(), args[1].String(), args[2], args[3])
	}))
	select {}
}

// A question has the arguments of every operation. An operation reads only its own.
type question struct {
	session.Setting
	Names   []string     `json:"names"`   // load: of the files
	Recover bool         `json:"recover"` // load: see session.Source
	Slots   int          `json:"slots"`   // run
	Known   []sim.Result `json:"known"`   // sweep, view
	Price   float64      `json:"price"`   // view
	Lost    float64      `json:"lost"`    // advise
	Worlds  int          `json:"worlds"`  // advise
	Memory  int64        `json:"memory"`  // advise: of the machine, bytes
}

// answer runs one operation, whose arguments are JSON, and returns an object with its answer or
// with an error. It calls progress with the share that is done.
func answer(s *session.Session, op, args string, files, progress js.Value) (out map[string]any) {
	defer func() {
		if p := recover(); p != nil {
			out = map[string]any{"error": fmt.Sprint("the simulator failed: ", p)}
		}
	}()
	var q question
	err := json.Unmarshal([]byte(args), &q)
	var a any
	if err == nil {
		a, err = ask(s, op, q, files, func(share float64) { progress.Invoke(share) })
	}
	var text []byte
	if err == nil {
		text, err = json.Marshal(a)
	}
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	return map[string]any{"answer": js.Global().Get("JSON").Call("parse", string(text))}
}

func ask(s *session.Session, op string, q question, files js.Value, progress func(share float64)) (any, error) {
	switch op {
	case "load":
		from := make([]session.Source, len(q.Names))
		for i, name := range q.Names {
			from[i] = session.Source{Name: name, From: newSlices(files.Index(i)), Recover: q.Recover}
		}
		return s.Load(from)
	case "info":
		return s.Info()
	case "run":
		return s.Run(q.Setting, q.Slots)
	case "sweep":
		return s.Sweep(q.Setting, q.Known, progress)
	case "view":
		return s.View(q.Setting, q.Known, q.Price)
	case "advise":
		return s.Advise(q.Setting, q.Lost, q.Worlds, q.Memory, progress)
	}
	return nil, fmt.Errorf("no operation %q", op)
}

// A slices reads a file of the page in slices, so that only one of them is in memory.
type slices struct {
	read js.Value // fills an array from an offset on, and returns the number of bytes: fewer at the end
	into js.Value // the array, which is shared, because Go keeps values of the page until it collects
	at   int
}

const sliceBytes = 1 << 20

func newSlices(read js.Value) io.Reader {
	return bufio.NewReaderSize(&slices{read: read, into: js.Global().Get("Uint8Array").New(sliceBytes)}, sliceBytes)
}

func (s *slices) Read(p []byte) (int, error) {
	n := s.read.Invoke(s.at, s.into).Int()
	if n = js.CopyBytesToGo(p[:min(n, len(p))], s.into); n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	s.at += n
	return n, nil
}
