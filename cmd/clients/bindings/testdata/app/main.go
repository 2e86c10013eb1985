// App uses two bindings that count their memory through package pressure. For each request it makes a dictionary
// of zstd's and a tree of a page, and forgets both. It prints what was counted as JSON: by name while
// nothing is garbage, then over the requests, and at the end. WAY=plain leaves all to Go, import is the
// import of gc/auto, and own counts each object with a collector of the app's own, besides.
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

const (
	held     = 50
	requests = 1500
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
	d, err := gozstd.NewCDictLevel(dict, 5)
	if err != nil {
		log.Fatal(err)
	}
	tree, err := parser.ParseCtx(context.Background(), nil, page)
	if err != nil {
		log.Fatal(err)
	}
	return request{d, tree}
}

type report struct {
	Page             int64            // bytes of it
	First, Held, End map[string]int64 // bytes by name: of one request, with 50 more, and when all is forgotten
	Named            []gc.Counted     // what the collector says with all of them
	Mean, Most       int64            // of all bytes, over the requests
	Cycles           uint32
	Processor        time.Duration // of the requests
}

var libraries = map[string]func() (bytes, objects int64){}

// counted is what the libraries say now, by name and in all.
func counted() (names map[string]int64, all int64) {
	names = map[string]int64{}
	for name, live := range libraries {
		bytes, _ := live()
		names[name] = bytes
		all += bytes
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
	for range held {
		all = append(all, serve(parser))
	}
	r.Held, _ = counted()
	if c := auto.Collector(); c != nil {
		r.Named = c.Counters()
	}
	runtime.KeepAlive(all)
	all = nil
	count := func(request) {}
	if os.Getenv("WAY") == "own" {
		c, err := gc.New(gc.Config{})
		if err != nil {
			log.Fatal(err)
		}
		count = func(x request) {
			gc.Count(c, x.dict, r.First["gozstd"])
			gc.Count(c, x.tree, r.First["tree-sitter"])
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := processor()
	var sum int64
	for range requests {
		count(serve(parser))
		_, now := counted()
		sum += now
		r.Most = max(r.Most, now)
	}
	r.Processor = processor() - begin
	runtime.ReadMemStats(&after)
	r.Mean, r.Cycles = sum/requests, after.NumGC-before.NumGC
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		runtime.GC()
		if _, now := counted(); now == 0 {
			break
		}
	}
	r.End, _ = counted()
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		log.Fatal(err)
	}
}
