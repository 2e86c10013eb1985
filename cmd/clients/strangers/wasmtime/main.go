// Wasmtime runs a plugin for each request in a separate store. Only finalizers free the stores:
// this version of wasmtime-go has no Close.
package main

import (
	"fmt"

	"github.com/bytecodealliance/wasmtime-go/v3"

	"github.com/eagergc/eagergc/cmd/clients/frame"
	_ "github.com/eagergc/eagergc/gc/auto" // the parent sets EAGERGC=off for all ways but auto
)

const pages = 16 // of memory, of 64 KiB each

func main() {
	frame.Main("wasmtime", frame.Client{Workers: 2, Requests: 600, Start: start})
}

func start(w *frame.Way) (frame.Service, error) {
	if w.Closes() {
		return nil, frame.ErrNoWay
	}
	engine := wasmtime.NewEngine()
	module, err := wasmtime.NewModule(engine, frame.Plugin(pages))
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
