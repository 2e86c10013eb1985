// Trees parses source text with tree-sitter. The finalizers of its binding free trees and parsers.
package main

import (
	"context"
	"fmt"
	"strings"

	sitter "github.com/smacker/go-tree-sitter"
	"github.com/smacker/go-tree-sitter/golang"

	"github.com/eagergc/eagergc/cmd/clients/frame"
	_ "github.com/eagergc/eagergc/gc/auto" // the parent sets EAGERGC=off for all ways but auto
)

const functions = 1000 // of a text

func main() {
	frame.Main("trees", frame.Client{Workers: 2, Requests: 200, Start: start})
}

func start(w *frame.Way) (frame.Service, error) {
	texts := make([][]byte, 8)
	for i := range texts {
		texts[i] = text(i)
	}
	return func(i int) error {
		parser := sitter.NewParser()
		defer frame.Hold(w, parser, 64<<10, parser.Close)()
		parser.SetLanguage(golang.GetLanguage())
		source := texts[i%len(texts)]
		tree, err := parser.ParseCtx(context.Background(), nil, source)
		if err != nil {
			return err
		}
		defer frame.Hold(w, tree, 20*int64(len(source)), tree.Close)()
		if root := tree.RootNode(); root.HasError() || root.ChildCount() < functions {
			return fmt.Errorf("text %d has %d functions", i, root.ChildCount())
		}
		return nil
	}, nil
}

func text(i int) []byte {
	var b strings.Builder
	b.WriteString("package p\n")
	for k := range functions {
		fmt.Fprintf(&b, "func f%d(a, b int) int {\n\tif a > %d {\n\t\treturn f%d(b, a-1)\n\t}\n\treturn a*b + %d\n}\n", k, i, (k+1)%functions, k)
	}
	return []byte(b.String())
}
