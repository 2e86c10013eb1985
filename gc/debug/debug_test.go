package debug_test

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/debug"
	"github.com/eagergc/eagergc/gc/debug/flight"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// program is a collector, a pool with a limit, and some garbage in it.
func program(t testing.TB) (*gc.Collector, *pool.Pool) {
	t.Helper()
	c, err := gc.New(gc.Config{Policy: policy.MustParse("cudajl").New()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	p, err := pool.New(pool.Config{Collector: c, Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 64 << 20}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	for range 100 {
		if _, err := array.New[byte](p, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	return c, p
}

// recorded is a program whose last minutes are kept.
func recorded(t testing.TB) (*gc.Collector, *pool.Pool, *flight.Recorder) {
	t.Helper()
	c, p := program(t)
	last, err := flight.New(flight.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := last.Close(); err != nil {
			t.Error(err)
		}
	})
	c.SetRecorder(last)
	p.SetTrace(last)
	for range 200 {
		if _, err := array.New[byte](p, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	return c, p, last
}

func get(h http.Handler, method, target, remote string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.RemoteAddr = remote
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const here = "127.0.0.1:1234"

// status is what the tests read of the page's data.
type status struct {
	Health health
	Token  string
	Policy string
	Spaces []struct {
		Live  int64 `json:"live_bytes"`
		Limit int64 `json:"limit_bytes"`
	}
	Cycles  map[string]uint64
	Freed   int64             `json:"freed_bytes"`
	Last    []json.RawMessage `json:"last_cycles"`
	Decided []json.RawMessage `json:"last_decisions"`
}

type health struct{ Level, Text, Do, See string }

func (s *status) read(t *testing.T, h http.Handler) {
	t.Helper()
	if err := json.Unmarshal(get(h, "GET", "http://localhost/?format=json", here).Body.Bytes(), s); err != nil {
		t.Fatal(err)
	}
}

// post does what costs something, with the token of the page unless another is given.
func post(t *testing.T, h http.Handler, form url.Values, change func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	if !form.Has("token") {
		var s status
		s.read(t, h)
		form.Set("token", s.Token)
	}
	r := httptest.NewRequest("POST", "http://localhost/debug/eagergc/", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.RemoteAddr = here
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestPageAndJSONTellTheSame(t *testing.T) {
	c, p := program(t)
	h := debug.Handler(c, p)
	var s status
	s.read(t, h)
	stats := c.Stats()
	if s.Policy != "cudajl" || len(s.Spaces) != 1 || s.Spaces[0].Limit != 64<<20 || s.Spaces[0].Live == 0 ||
		s.Cycles["policy"] != stats.Cycles[policy.TriggerPolicy] || s.Freed != stats.Freed || len(s.Last) == 0 || len(s.Decided) == 0 {
		t.Errorf("%+v", s)
	}
	body := get(h, "GET", "http://127.0.0.1/debug/eagergc", here).Body.String()
	for _, want := range []string{"policy cudajl", "<h2>host</h2>", "64.00 MiB", "<td class=\"t\">policy<td class=\"t\">block", "pressure"} {
		if !strings.Contains(body, want) {
			t.Errorf("page lacks %q", want)
		}
	}
}

// TestPageNamesLibraries that count, with what they hold.
func TestPageNamesLibraries(t *testing.T) {
	c, p := program(t)
	lib := pressure.NewCounter("libfoo")
	for range 340 {
		lib.Add(1 << 20)
		defer lib.Sub(1 << 20)
	}
	c.Listen()
	h := debug.Handler(c, p)
	const row = `<td class="t">libfoo<td>340.00 MiB<td>340<td>0 B`
	if body := get(h, "GET", "http://127.0.0.1/debug/eagergc", here).Body.String(); !strings.Contains(body, row) {
		t.Errorf("page lacks %q:\n%s", row, body)
	}
	const text = `"name":"libfoo","live_bytes":356515840,"objects":340,"freed_bytes":0`
	body := get(h, "GET", "http://localhost/?format=json", here).Body.String()
	if body = strings.Join(strings.Fields(body), ""); !strings.Contains(body, text) {
		t.Errorf("JSON lacks %q:\n%s", text, body)
	}
}

// headers that every answer has.
func checkHeaders(t *testing.T, what string, w *httptest.ResponseRecorder) {
	t.Helper()
	if got := w.Header().Get("Cache-Control"); got != "no-store" {
		t.Errorf("%s: Cache-Control %q", what, got)
	}
	if got := w.Header().Get("X-Content-Type-Options"); got != "nosniff" {
		t.Errorf("%s: X-Content-Type-Options %q", what, got)
	}
}

// Which requests are answered, by the handler and without its guard, and as what.
func TestRequests(t *testing.T) {
	c := newCollector(t, gc.Config{})
	const plain, page, data = "text/plain; charset=utf-8", "text/html; charset=utf-8", "application/json"
	for _, tc := range []struct {
		method, target, remote string
		local, unguarded       int
		kind                   string // of what the unguarded one says
	}{
		{"GET", "http://localhost/debug/eagergc", here, 200, 200, page},
		{"GET", "http://localhost:6060/debug/eagergc", here, 200, 200, page},
		{"GET", "http://127.0.0.1/debug/eagergc", here, 200, 200, page},
		{"GET", "http://[::1]:80/debug/eagergc", "[::1]:99", 200, 200, page},
		{"GET", "http://[::1]/debug/eagergc", "[::ffff:127.0.0.1]:99", 200, 200, page},
		{"GET", "http://[::1]/debug/eagergc", "::1", 200, 200, page},
		{"GET", "http://localhost/?format=json", here, 200, 200, data},
		{"GET", "http://localhost/?format=html", here, 200, 200, page},
		{"HEAD", "http://127.0.0.2/debug/eagergc", here, 200, 200, ""},
		{"HEAD", "http://127.0.0.2/?format=json", here, 200, 200, ""},
		{"GET", "http://localhost/debug/eagergc", "10.0.0.1:99", 403, 200, page},
		{"GET", "http://localhost/debug/eagergc", "[2001:db8::1]:99", 403, 200, page},
		{"GET", "http://localhost/debug/eagergc", "@", 403, 200, page}, // a unix socket
		{"GET", "http://app.example/?format=json", "10.0.0.1:99", 403, 200, data},
		{"GET", "http://evil.example/debug/eagergc", here, 403, 200, page},
		{"GET", "http://localhost.evil.example/debug/eagergc", here, 403, 200, page},
		{"GET", "http://0.0.0.0/debug/eagergc", here, 403, 200, page},
		{"HEAD", "http://evil.example/debug/eagergc", here, 403, 200, ""},
		{"POST", "http://localhost/debug/eagergc", here, 403, 403, plain},
		{"POST", "http://app.example/debug/eagergc", "10.0.0.1:99", 403, 403, plain},
		{"DELETE", "http://localhost/debug/eagergc?format=json", here, 405, 405, plain},
		{"PUT", "http://localhost/debug/eagergc", here, 405, 405, plain},
		{"OPTIONS", "http://app.example/debug/eagergc", "10.0.0.1:99", 403, 405, plain},
	} {
		what := tc.method + " " + tc.target + " from " + tc.remote
		w := get(debug.Handler(c), tc.method, tc.target, tc.remote)
		if checkHeaders(t, what, w); w.Code != tc.local {
			t.Errorf("%s: %d, want %d", what, w.Code, tc.local)
		}
		if w.Code == 403 && strings.Contains(w.Body.String(), "<html") {
			t.Errorf("%s: refused, and told", what)
		}
		w = get(debug.Unguarded(c), tc.method, tc.target, tc.remote)
		checkHeaders(t, what+", unguarded", w)
		if kind := w.Header().Get("Content-Type"); w.Code != tc.unguarded || kind != tc.kind || (tc.method == "HEAD") != (w.Body.Len() == 0) {
			t.Errorf("%s, unguarded: %d %s of %d bytes, want %d %s", what, w.Code, kind, w.Body.Len(), tc.unguarded, tc.kind)
		}
		if allow := w.Header().Get("Allow"); (w.Code == 405) != (allow == "GET, HEAD, POST") {
			t.Errorf("%s, unguarded: %d, allow %q", what, w.Code, allow)
		}
	}
}

// Only styles and the script of this load are run, and nothing else is loaded. Who has not read the page has no token.
func TestPageTrustsOnlyItself(t *testing.T) {
	c := newCollector(t, gc.Config{})
	h := debug.Handler(c)
	seen := map[string]bool{}
	for range 3 {
		w := get(h, "GET", "http://localhost/", here)
		nonces := regexp.MustCompile(`nonce[-=]"?([A-Z0-9]{26,})`).FindAllStringSubmatch(w.Header().Get("Content-Security-Policy")+w.Body.String(), -1)
		if len(nonces) != 4 {
			t.Fatalf("%d nonces: %v", len(nonces), nonces)
		}
		for _, n := range nonces {
			if n[1] != nonces[0][1] {
				t.Errorf("nonces differ: %v", nonces)
			}
		}
		seen[nonces[0][1]] = true
		for _, want := range []string{"default-src 'none';", "connect-src 'self';", "base-uri 'none';", "form-action 'self';", "frame-ancestors 'none';", "style-src 'nonce-", "script-src 'nonce-"} {
			if got := w.Header().Get("Content-Security-Policy"); !strings.Contains(got, want) {
				t.Errorf("%q lacks %q", got, want)
			}
		}
	}
	if len(seen) != 3 {
		t.Errorf("a nonce is used again: %v", seen)
	}
	var a, b, again status
	a.read(t, h)
	b.read(t, debug.Handler(c))
	again.read(t, h)
	if len(a.Token) < 26 || a.Token == b.Token || a.Token != again.Token {
		t.Errorf("tokens %q, %q, %q", a.Token, again.Token, b.Token)
	}
	if body := get(h, "GET", "http://localhost/", here).Body.String(); !strings.Contains(body, `name="token" value="`+a.Token+`"`) {
		t.Error("the page lacks its token")
	}
}

func newCollector(t *testing.T, cfg gc.Config) *gc.Collector {
	t.Helper()
	c, err := gc.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// As it is registered, the page is there with a slash at the end and without.
func TestSlash(t *testing.T) {
	c, p := program(t)
	mux := http.NewServeMux()
	mux.Handle("/debug/eagergc/", debug.Handler(c, p))
	if w := get(mux, "GET", "http://localhost/debug/eagergc/", here); w.Code != http.StatusOK {
		t.Errorf("with a slash: %d", w.Code)
	}
	if w := get(mux, "GET", "http://localhost/debug/eagergc", here); w.Code/100 != 3 || w.Header().Get("Location") != "/debug/eagergc/" {
		t.Errorf("without: %d, %v", w.Code, w.Header())
	}
}

// Another web page and a proxy on this machine that rewrites Host are told by what they add, or by an old protocol.
// What else a client sends does not matter.
func TestNobodyElseMayRead(t *testing.T) {
	c := newCollector(t, gc.Config{})
	h := debug.Handler(c)
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	const proxy, page = "not through a proxy", "not for other web pages"
	for _, tc := range []struct {
		name   string
		change func(*http.Request)
		want   string // "" = answered
	}{
		{"nothing", func(*http.Request) {}, ""},
		{"nginx", func(r *http.Request) { r.Proto, r.ProtoMinor, r.Close = "HTTP/1.0", 0, true }, proxy},
		{"HTTP/1.0", func(r *http.Request) { r.Proto, r.ProtoMinor = "HTTP/1.0", 0 }, proxy},
		{"closing", func(r *http.Request) { r.Close = true }, proxy},
		{"HTTP/2", func(r *http.Request) { r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/2.0", 2, 0 }, ""},
		{"Forwarded", header("Forwarded", "for=203.0.113.7"), proxy},
		{"Via", header("Via", "1.1 somebody"), proxy},
		{"X-Forwarded", header("X-Forwarded", "for"), proxy},
		{"X-Forwarded-For", header("X-Forwarded-For", "203.0.113.7"), proxy},
		{"X-Forwarded-Host", header("X-Forwarded-Host", "app.example"), proxy},
		{"X-Real-IP", header("X-Real-IP", "203.0.113.7"), proxy},
		{"X-Original-URL", header("X-Original-URL", "/"), proxy},
		{"X-Envoy-External-Address", header("X-Envoy-External-Address", "203.0.113.7"), proxy},
		{"CF-Connecting-IP", header("CF-Connecting-IP", "203.0.113.7"), proxy},
		{"True-Client-IP", header("True-Client-IP", "203.0.113.7"), proxy},
		{"X-Client-IP", header("X-Client-IP", "203.0.113.7"), proxy},
		{"cross-site", header("Sec-Fetch-Site", "cross-site"), page},
		{"other port", header("Sec-Fetch-Site", "same-site"), page},
		{"of the page", header("Sec-Fetch-Site", "same-origin"), ""},
		{"typed", header("Sec-Fetch-Site", "none"), ""},
		{"foreign origin", header("Origin", "https://evil.example"), page},
		{"origin at another port", header("Origin", "http://localhost:81"), page},
		{"no origin", header("Origin", "null"), page},
		{"itself", header("Origin", "http://localhost"), ""},
	} {
		for range 3 { // headers come in any order
			r := httptest.NewRequest("GET", "http://localhost/debug/eagergc", nil)
			r.RemoteAddr = here
			for i := range 10 {
				r.Header.Set(fmt.Sprint("X-Own-", i), "for")
			}
			r.Header.Set("Accept", "text/html")
			r.Header.Set("Referer", "http://localhost/")
			tc.change(r)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if refused := w.Code == http.StatusForbidden && strings.Contains(w.Body.String(), tc.want); refused != (tc.want != "") || !refused && w.Code != http.StatusOK {
				t.Errorf("%s: %d %.100s, want %q", tc.name, w.Code, w.Body, tc.want)
			}
			checkHeaders(t, tc.name, w)
		}
	}
}

// A broken is a recorder that cannot write.
type broken struct{ bad }

func (broken) WriteRecording(io.Writer) error { return errors.New("the disk is full") }

// What a POST is answered, by what it asks for.
func TestPosts(t *testing.T) {
	c := newCollector(t, gc.Config{})
	last, err := flight.New(flight.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer last.Close()
	ended, end := context.WithCancel(t.Context())
	end() // a window ends with its request
	soon := func(r *http.Request) { *r = *r.WithContext(ended) }
	const plain = "text/plain; charset=utf-8"
	all := map[string]http.Handler{
		"none": debug.Unguarded(c), "one": debug.Unguarded(c, bad{}, last), "one, then a report": debug.Unguarded(c, last, bad{}), "broken": debug.Unguarded(c, broken{}),
	}
	for _, tc := range []struct {
		of   string
		form url.Values
		code int
		kind string
		want string
	}{
		{"none", url.Values{"do": {"diagnose"}}, 200, plain, "Next: "},
		{"none", url.Values{"do": {"diagnose"}, "window": {"0s"}}, 200, plain, "Next: "},
		{"none", url.Values{"do": {"diagnose"}, "window": {"1m"}}, 200, plain, "Next: "},
		{"none", url.Values{"do": {"diagnose"}, "window": {"1m1ns"}}, 400, plain, "window=1m1ns: want a time from 0s to 1m0s, such as 10s"},
		{"none", url.Values{"do": {"diagnose"}, "window": {"-1ns"}}, 400, plain, "window=-1ns: want a time"},
		{"none", url.Values{"do": {"diagnose"}, "window": {"soon"}}, 400, plain, "window=soon: want a time"},
		{"none", url.Values{"do": {"recording"}}, 400, plain, `do="recording": want diagnose, or recording where there is one`},
		{"none", url.Values{}, 400, plain, `do="": want diagnose`},
		{"one", url.Values{"do": {"record"}}, 400, plain, `do="record": want diagnose`},
		{"one", url.Values{"do": {"recording"}}, 200, "application/vnd.apache.arrow.stream", "ARROW"},
		{"one, then a report", url.Values{"do": {"recording"}}, 200, "application/vnd.apache.arrow.stream", "ARROW"},
		{"broken", url.Values{"do": {"recording"}}, 500, plain, "eagergc: the disk is full"},
	} {
		what := fmt.Sprint(tc.of, " ", tc.form)
		w := post(t, all[tc.of], tc.form, soon)
		checkHeaders(t, what, w)
		if kind := w.Header().Get("Content-Type"); w.Code != tc.code || kind != tc.kind || tc.want != "ARROW" && !strings.Contains(w.Body.String(), tc.want) {
			t.Errorf("%s: %d %s %.200s, want %d %s %s", what, w.Code, kind, w.Body, tc.code, tc.kind, tc.want)
		}
		if is, want := w.Header().Get("Content-Disposition"), tc.want == "ARROW"; (is == `attachment; filename="last.arrows"`) != want || !want && is != "" {
			t.Errorf("%s: %q", what, is)
		}
	}
	for name, want := range map[string]bool{"none": false, "one": true, "one, then a report": true} {
		if body := get(all[name], "GET", "http://localhost/", here).Body.String(); strings.Contains(body, `value="recording"`) != want {
			t.Errorf("%s: a button is %v", name, want)
		}
	}
}

// A form is short, and the token is wanted of it: longer ones are not read to their end.
func TestLongForms(t *testing.T) {
	h := debug.Handler(newCollector(t, gc.Config{}))
	var s status
	s.read(t, h)
	form := url.Values{"do": {"nothing"}, "token": {s.Token}, "fill": {""}}
	rest := 4096 - len(form.Encode())
	for n, want := range map[int]int{rest: http.StatusBadRequest, rest + 1: http.StatusForbidden} {
		form.Set("fill", strings.Repeat("x", n))
		if w := post(t, h, form, nil); w.Code != want {
			t.Errorf("%d bytes: %d %s, want %d", len(form.Encode()), w.Code, w.Body, want)
		}
	}
}

// What costs something is not to be had by a GET or a HEAD, from another page, or without the page's token.
func TestOnlyThePageMayRunCycles(t *testing.T) {
	c, p, last := recorded(t)
	for name, h := range map[string]http.Handler{"handler": debug.Handler(c, p, last), "unguarded": debug.Unguarded(c, p, last)} {
		before := c.Stats().Cycles[policy.TriggerExplicit]
		for _, target := range []string{"?diagnose=0s", "?do=diagnose", "?whatif", "?recording", "?do=recording"} {
			for _, method := range []string{"GET", "HEAD"} {
				w := get(h, method, "http://localhost/debug/eagergc/"+target, here)
				if w.Code != http.StatusOK || w.Header().Get("Content-Disposition") != "" || strings.Contains(w.Body.String(), "Next: ") {
					t.Errorf("%s: %s %s: %d %v", name, method, target, w.Code, w.Header())
				}
			}
		}
		for what, w := range map[string]*httptest.ResponseRecorder{
			"no token":    post(t, h, url.Values{"do": {"diagnose"}, "token": {""}}, nil),
			"wrong token": post(t, h, url.Values{"do": {"diagnose"}, "token": {"AAAA"}}, nil),
			"other page":  post(t, h, url.Values{"do": {"diagnose"}}, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }),
		} {
			if w.Code != http.StatusForbidden {
				t.Errorf("%s, %s: %d %s", name, what, w.Code, w.Body)
			}
		}
		if n := c.Stats().Cycles[policy.TriggerExplicit]; n > before+1 { // one when the program is idle
			t.Errorf("%s: %d cycles", name, n-before)
		}
	}
}

// Of many at once one runs, and ends with its request.
func TestOneAtATime(t *testing.T) {
	c, p := program(t)
	h := debug.Handler(c, p)
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan int)
	form := url.Values{"do": {"diagnose"}, "window": {"1m"}}
	go func() {
		code := http.StatusTooManyRequests
		for code == http.StatusTooManyRequests { // one of those below may have been before it
			code = post(t, h, form, func(r *http.Request) { *r = *r.WithContext(ctx) }).Code
		}
		first <- code
	}()
	for end := time.Now().Add(time.Minute); post(t, h, url.Values{"do": {"soon"}}, nil).Code != http.StatusTooManyRequests; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a second one runs beside the first")
		}
	}
	cancel()
	select {
	case code := <-first:
		if code != http.StatusOK {
			t.Errorf("%d", code)
		}
	case <-time.After(30 * time.Second):
		t.Error("it goes on without its client")
	}
}

// An app whose clients have to sign in anyway serves the page to those who have.
func ExampleUnguarded() {
	c, err := gc.New(gc.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	page := debug.Unguarded(c)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if user != "operator" || subtle.ConstantTimeCompare([]byte(password), []byte("secret")) != 1 {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		page.ServeHTTP(w, r)
	})

	request := httptest.NewRequest("GET", "https://app.example/debug/eagergc", nil)
	for range 2 {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		fmt.Println(answer.Code)
		request.SetBasicAuth("operator", "secret")
	}
	// Output:
	// 401
	// 200
}

func TestWhatPoliciesAndReportsSayIsEscaped(t *testing.T) {
	c, _ := program(t)
	w := get(debug.Handler(c, bad{}), "GET", "http://localhost/", here)
	if body := w.Body.String(); strings.Contains(body, "<b>oops") || !strings.Contains(body, "&lt;b&gt;oops") {
		t.Error("report is not escaped")
	}
}

type bad struct{}

func (bad) Report(io.Writer) error {
	return fmt.Errorf("<b>oops</b>")
}

// BenchmarkUnderLoad is an allocation and its Free on two goroutines, with
// nobody looking and with a page load a second, which is what an open page does.
func BenchmarkUnderLoad(b *testing.B) {
	for _, looking := range []bool{false, true} {
		b.Run(fmt.Sprintf("looking=%v", looking), func(b *testing.B) {
			c, p := program(b)
			h := debug.Handler(c, p)
			stop := make(chan struct{})
			done := make(chan struct{})
			go func() {
				defer close(done)
				for looking {
					get(h, "GET", "http://localhost/", here)
					select {
					case <-stop:
						return
					case <-time.After(time.Second):
					}
				}
			}()
			b.SetParallelism(max(1, 2/runtime.GOMAXPROCS(0)))
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					a, err := array.New[byte](p, 4096)
					if err != nil {
						b.Error(err)
						return
					}
					a.Free()
				}
			})
			b.StopTimer()
			close(stop)
			<-done
		})
	}
}

// BenchmarkPairs measures what BenchmarkUnderLoad does where other work on the
// machine is louder: two goroutines allocate and free all the time, in pairs of
// neighbouring windows, of which one begins with a load of the page. It reports
// the median over the pairs of how much fewer allocations that window had, and
// the 95 % interval of the median. -benchtime 30x is 30 pairs.
func BenchmarkPairs(b *testing.B) {
	const second, often = time.Second, 100 * time.Millisecond
	for _, bm := range []struct {
		every   time.Duration
		looking bool // false shows what the method sees where there is nothing
	}{{second, false}, {second, true}, {often, false}, {often, true}} {
		b.Run(fmt.Sprintf("every=%v/looking=%v", bm.every, bm.looking), func(b *testing.B) {
			c, p := program(b)
			h := debug.Handler(c, p)
			var counts [2]struct {
				atomic.Int64
				_ [120]byte
			}
			var stop atomic.Bool
			var busy sync.WaitGroup
			for i := range counts {
				busy.Add(1)
				go func() {
					defer busy.Done()
					for !stop.Load() {
						a, err := array.New[byte](p, 4096)
						if err != nil {
							b.Error(err)
							return
						}
						a.Free()
						counts[i].Add(1)
					}
				}()
			}
			window := func(look bool) float64 {
				begin, before := time.Now(), counts[0].Load()+counts[1].Load()
				if look {
					get(h, "GET", "http://localhost/", here)
				}
				time.Sleep(time.Until(begin.Add(bm.every)))
				n := counts[0].Load() + counts[1].Load() - before
				return float64(n) / time.Since(begin).Seconds()
			}
			window(false)
			var slower []float64
			for i := 0; b.Loop(); i++ {
				first := window(bm.looking && i%2 == 0)
				second := window(bm.looking && i%2 == 1)
				if i%2 == 1 {
					first, second = second, first
				}
				slower = append(slower, 100*(1-first/second))
			}
			stop.Store(true)
			busy.Wait()
			slices.Sort(slower)
			n := float64(len(slower))
			rank := func(z float64) float64 { return slower[max(0, min(len(slower)-1, int(n/2+z*math.Sqrt(n)/2)))] }
			b.ReportMetric(rank(0), "slower-%")
			b.ReportMetric(rank(-1.96), "slower-low-%")
			b.ReportMetric(rank(1.96), "slower-high-%")
		})
	}
}

// BenchmarkPage is one load of the page: an open one asks for the JSON once a
// second.
func BenchmarkPage(b *testing.B) {
	c, p := program(b)
	h := debug.Handler(c, p)
	for _, target := range []string{"http://localhost/", "http://localhost/?format=json"} {
		b.Run("of="+target[len("http://localhost/"):], func(b *testing.B) {
			for b.Loop() {
				get(h, "GET", target, here)
			}
		})
	}
}

func TestDiagnose(t *testing.T) {
	c, p := program(t)
	h := debug.Handler(c, p)
	w := post(t, h, url.Values{"do": {"diagnose"}, "window": {"0s"}}, nil)
	if text := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(text, "Next: ") || !strings.Contains(text, "objects in the Go heap") {
		t.Errorf("%d %s", w.Code, text)
	}
}

// The download is a recording that validates; its objects are what the pool holds.
func TestDownload(t *testing.T) {
	c, p, last := recorded(t)
	h := debug.Handler(c, p, last)
	w := post(t, h, url.Values{"do": {"recording"}}, nil)
	if w.Code != http.StatusOK || w.Header().Get("Content-Disposition") != `attachment; filename="last.arrows"` {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	tr, err := trace.Read(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Validate(); err != nil {
		t.Error(err)
	}
	kinds := map[trace.Kind]int{}
	for _, e := range tr.Events {
		kinds[e.Kind]++
	}
	if kinds[trace.Alloc] < 200 || kinds[trace.Cycle] == 0 || tr.Start.IsZero() || time.Since(tr.Start) > time.Hour {
		t.Errorf("%v, since %v", kinds, tr.Start)
	}
}

// Of a collector at work. The bounds of each trouble are in TestHealthBounds.
func TestHealth(t *testing.T) {
	health := func(c *gc.Collector) health {
		var s status
		s.read(t, debug.Handler(c))
		return s.Health
	}
	over := newCollector(t, gc.Config{Limit: 1000, Policy: policy.MustParse("never").New()})
	over.Account(5000)
	over.Collect(policy.TriggerExplicit)
	if h := health(over); h.Level != "bad" || !strings.Contains(h.Text, "More is reachable") {
		t.Errorf("%+v", h)
	}
	forced := newCollector(t, gc.Config{Policy: policy.MustParse("never").New()})
	p, err := pool.New(pool.Config{Collector: forced, Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 8 << 20}}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for range 20 {
		if _, err := array.New[byte](p, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	if h := health(forced); h.Level != "watch" || !strings.Contains(h.Text, "forced by allocations that did not fit") {
		t.Errorf("%+v", h)
	}
}
