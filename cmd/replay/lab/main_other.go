//go:build !js || !wasm

// Command lab is the simulator in a web page. It runs in a browser alone:
//
//	replay lab
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "lab: this program runs in a browser: replay lab builds it and opens the page")
	os.Exit(1)
}
