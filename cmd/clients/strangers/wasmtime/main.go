// Wasmtime runs a plugin for each request in a store of its own, which finalizers alone free: wasmtime-go of this version has no Close.
package main

import (
	"fmt"

	"github.com/bytecodealliance/wasmtime-go/v3"

	"github.com/eagergc/eagergc/cmd/clients/frame"
	_ "github.com/eagergc/eagergc/gc/auto" // the parent sets EAGERGC=off for all ways but auto
)

const (
	pages  = 16 // of memory, of 64 KiB each
	plugin = `(module (memory 16) (func (export "run") (param i32) (result i32) (local i32)
		(loop (i32.store (local.get 1) (local.get 0))
			(br_if 0 (i32.lt_u (local.tee 1 (i32.add (local.get 1) (i32.const 4096))) (i32.const 0x100000))))
		(local.get 1)))`
)

func main() {
	frame.Main("wasmtime", frame.Client{Workers: 2, Requests: 600, Start: start})
}

func start(w *frame.Way) (frame.Service, error) {
	if w.Closes() {
		return nil, frame.ErrNoWay
	}
	code, err := wasmtime.Wat2Wasm(plugin)
	if err != nil {
		return nil, err
	}
	engine := wasmtime.NewEngine()
	module, err := wasmtime.NewModule(engine, code)
	if err != nil {
		return nil, err
	}
	return func(i int) error {
		store := wasmtime.NewStore(engine)
		frame.Hold(w, store, pages<<16, nil)
		instance, err := wasmtime.NewInstance(store, module, nil)
		if err != nil {
			return err
		}
		out, err := instance.GetFunc(store, "run").Call(store, i)
		if err == nil && out != int32(pages<<16) {
			err = fmt.Errorf("the plugin has written up to %v", out)
		}
		return err
	}, nil
}
