// Eagergc-vet is the analyzer of package vet as a command:
//
//	go vet -vettool=$(which eagergc-vet) ./...
package main

import (
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/eagergc/eagergc/gc/vet"
)

func main() { unitchecker.Main(vet.Analyzer) }
