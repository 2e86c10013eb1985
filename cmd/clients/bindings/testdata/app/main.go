// App uses two bindings that count their memory through package pressure. For each request it makes a zstd dictionary
// and a syntax tree of a page, and drops both. It prints what the bindings counted as JSON.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"runtime"
	"strings"
	"time"
	"unsafe"

	sitter "github.com/smacker/go-tree-sitter"
	"github.com/smacker/go-tree-sitter/html"
	"github.com/valyala/gozstd"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/auto"
	"github.com/eagergc/eagergc/pressure"
)

var (
	page = []byte("<html><body>" + strings.Repeat("<p class=\"a\">one <b>two</b></p>\n", 300) + "</body></html>")
	dict = []byte(strings.Repeat("some words of a dictionary, ", 10000))
)

type request struct {
	dict *gozstd.CDict
	tree *sitter.Tree
}

func serve(parser *sitter.Parser) request {
	d, err1 := gozstd.NewCDictLevel(dict, 5)
	tree, err2 := parser.ParseCtx(context.Background(), nil, page)
	if err1 != nil || err2 != nil {
		log.Fatal(err1, err2)
	}
	return request{d, tree}
}

type report struct {
	Page             int64            // bytes of it
	First, Held, End map[string]int64 // bytes by library: of one request, of 51, and after all were dropped
	Named            []gc.Counted     // by the collector, while 51 requests are held
	Mean             int64            // bytes of both libraries, over 1,500 requests
}

var libraries = map[string]func() (bytes, objects int64){}

// counted returns the bytes that the libraries count now, by name and in all.
func counted() (names map[string]int64, all int64) {
	names = map[string]int64{}
	for name, live := range libraries {
		names[name], _ = live()
		all += names[name]
	}
	return names, all
}

func main() {
	pressure.Listen(func(name string, live func() (bytes, objects int64)) func(int64, unsafe.Pointer) {
		libraries[name] = live
		return nil
	})
	parser := sitter.NewParser()
	parser.SetLanguage(html.GetLanguage())
	r := report{Page: int64(len(page))}
	all := []request{serve(parser)}
	r.First, _ = counted()
	for range 50 {
		all = append(all, serve(parser))
	}
	r.Held, _ = counted()
	if c := auto.Collector(); c != nil {
		r.Named = c.Counters()
	}
	runtime.KeepAlive(all)
	all = nil
	for range 1500 {
		serve(parser)
		_, now := counted()
		r.Mean += now / 1500
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		runtime.GC()
		if _, now := counted(); now == 0 {
			break
		}
	}
	r.End, _ = counted()
	json.NewEncoder(os.Stdout).Encode(r)
}
