package pressure_test

import (
	"fmt"
	"runtime"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

// A library counts its memory. The program that uses it decides whether a collector listens.
func ExampleOwn() {
	var images = pressure.NewCounter("libfoo") // once

	type Image struct {
		pixels uintptr // C memory
		size   int64
	}
	freed := make(chan uintptr)
	freePixels := func(pixels uintptr) { freed <- pixels } // C.foo_free
	load := func(pixels uintptr, size int64) *Image {
		img := &Image{pixels: pixels, size: size}
		pressure.Own(images, img, size, freePixels, pixels) // as runtime.AddCleanup, and counts size until the pixels are freed
		return img
	}
	runtime.KeepAlive(load(7, 8<<20))

	for {
		runtime.GC() // Go, or a collector that listens, runs cycles by itself
		select {
		case pixels := <-freed:
			fmt.Println("freed", pixels)
			return
		case <-time.After(time.Millisecond):
		}
	}
	// Output: freed 7
}

// A library that frees by finalizers of its own counts bytes when it takes and frees memory.
func ExampleCounter() {
	images := pressure.NewCounter("libfoo") // once
	images.Add(8 << 20)                     // where the library takes memory
	images.Sub(8 << 20)                     // where it frees it
}
