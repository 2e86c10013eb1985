// Binding is a program with a library that counts its memory, and no collector. It prints what that started.
package main

import (
	"fmt"
	"runtime"

	"github.com/eagergc/eagergc/pressure"
)

var images = pressure.NewCounter("images")

func main() {
	var before, after runtime.MemStats
	runtime.AddCleanup(new([4]int), func(int) {}, 0) // the runtime's own goroutine for cleanups is there from the first on
	runtime.ReadMemStats(&before)
	goroutines := runtime.NumGoroutine()
	for range 1000 {
		images.Add(1 << 20)
		pressure.Own(images, new([4]int), 1<<20, func(uintptr) {}, 1)
		images.Sub(1 << 20)
	}
	runtime.ReadMemStats(&after)
	fmt.Printf("%d goroutines, %d cycles\n", runtime.NumGoroutine()-goroutines, after.NumGC-before.NumGC)
}
