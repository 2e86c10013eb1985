// Wasmer compiles and runs a plugin for each request. The finalizers of wasmer-go free modules,
// instances and stores. The binding lacks calls of runtime.KeepAlive, so a run with frequent cycles
// crashes now and then.
package main

import (
	"fmt"
	"runtime"

	"github.com/wasmerio/wasmer-go/wasmer"

	"github.com/eagergc/eagergc/cmd/clients/frame"
	_ "github.com/eagergc/eagergc/gc/auto" // the parent sets EAGERGC=off for all ways but auto
)

const pages = 16 // of memory, of 64 KiB each

func main() {
	frame.Main("wasmer", frame.Client{Workers: 2, Requests: 600, Start: start})
}

func start(w *frame.Way) (frame.Service, error) {
	engine := wasmer.NewEngine()
	return func(i int) error {
		store := wasmer.NewStore(engine)
		defer frame.Hold(w, store, 16<<10, store.Close)()
		module, err := wasmer.NewModule(store, frame.Plugin(pages))
		if err != nil {
			return err
		}
		defer frame.Hold(w, module, 16<<10, module.Close)()
		instance, err := wasmer.NewInstance(module, wasmer.NewImportObject())
		if err != nil {
			return err
		}
		defer frame.Hold(w, instance, pages<<16, instance.Close)()
		run, err := instance.Exports.GetFunction("run")
		if err != nil {
			return err
		}
		out, err := run(i)
		runtime.KeepAlive(instance) // the binding does not, and crashes
		if err == nil && out != int32(pages<<16) {
			err = fmt.Errorf("the plugin has written up to %v", out)
		}
		return err
	}, nil
}
