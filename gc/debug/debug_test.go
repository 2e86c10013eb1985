package debug_test

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/debug"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
)

var _ debug.Reporter = (*pool.Pool)(nil)

func get(h http.Handler, method, target, remote string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.RemoteAddr = remote
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const here = "127.0.0.1:1234"

// token returns the one in the page's data.
func token(t *testing.T, h http.Handler) string {
	t.Helper()
	var s struct{ Token string }
	if err := json.Unmarshal(get(h, "GET", "http://localhost/?format=json", here).Body.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	return s.Token
}

// post sends a form, with the token of the page unless the form has one.
func post(t *testing.T, h http.Handler, form url.Values, change func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	if !form.Has("token") {
		form.Set("token", token(t, h))
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

// checkHeaders checks the headers that every answer has.
func checkHeaders(t *testing.T, what string, w *httptest.ResponseRecorder) {
	t.Helper()
	if got := w.Header().Get("Cache-Control"); got != "no-store" {
		t.Errorf("%s: Cache-Control %q", what, got)
	}
	if got := w.Header().Get("X-Content-Type-Options"); got != "nosniff" {
		t.Errorf("%s: X-Content-Type-Options %q", what, got)
	}
}

// TestRequests: status and type of the answers of Handler and Unguarded, and the text of those that refuse.
func TestRequests(t *testing.T) {
	const elsewhere, noToken = "eagergc: only for this machine, by a loopback address\n", "eagergc: needs the page's token: reload the page, or take the token from ?format=json\n"
	const notAllowed = "eagergc: GET reads, POST runs a diagnosis\n"
	c := newCollector(t)
	const plain, page, data = "text/plain; charset=utf-8", "text/html; charset=utf-8", "application/json"
	for _, tc := range []struct {
		method, target, remote string
		local, unguarded       int
		kind                   string // of the unguarded answer
	}{
		{"GET", "http://localhost/debug/eagergc", here, 200, 200, page},
		{"GET", "http://127.0.0.1/debug/eagergc", here, 200, 200, page},
		{"GET", "http://[::1]:80/debug/eagergc", "[::1]:99", 200, 200, page},
		{"GET", "http://[::1]/debug/eagergc", "[::ffff:127.0.0.1]:99", 200, 200, page},
		{"GET", "http://localhost/?format=json", here, 200, 200, data},
		{"HEAD", "http://127.0.0.2/debug/eagergc", here, 200, 200, ""},
		{"GET", "http://localhost/debug/eagergc", "10.0.0.1:99", 403, 200, page},
		{"GET", "http://localhost/debug/eagergc", "[2001:db8::1]:99", 403, 200, page},
		{"GET", "http://localhost/debug/eagergc", "@", 403, 200, page}, // a unix socket
		{"GET", "http://app.example/?format=json", "10.0.0.1:99", 403, 200, data},
		{"GET", "http://evil.example/debug/eagergc", here, 403, 200, page},
		{"GET", "http://localhost.evil.example/debug/eagergc", here, 403, 200, page},
		{"GET", "http://0.0.0.0/debug/eagergc", here, 403, 200, page},
		{"POST", "http://localhost/debug/eagergc", here, 403, 403, plain},
		{"POST", "http://app.example/debug/eagergc", "10.0.0.1:99", 403, 403, plain},
		{"DELETE", "http://localhost/debug/eagergc?format=json", here, 405, 405, plain},
		{"OPTIONS", "http://app.example/debug/eagergc", "10.0.0.1:99", 403, 405, plain},
	} {
		what := tc.method + " " + tc.target + " from " + tc.remote
		w := get(debug.Handler(c), tc.method, tc.target, tc.remote)
		if checkHeaders(t, what, w); w.Code != tc.local {
			t.Errorf("%s: %d, want %d", what, w.Code, tc.local)
		}
		if text := w.Body.String(); w.Code == 403 && text != elsewhere && (tc.method != "POST" || text != noToken) {
			t.Errorf("%s: refused with %s", what, text)
		}
		w = get(debug.Unguarded(c), tc.method, tc.target, tc.remote)
		checkHeaders(t, what+", unguarded", w)
		if kind := w.Header().Get("Content-Type"); w.Code != tc.unguarded || kind != tc.kind || (tc.method == "HEAD") != (w.Body.Len() == 0) {
			t.Errorf("%s, unguarded: %d %s of %d bytes, want %d %s", what, w.Code, kind, w.Body.Len(), tc.unguarded, tc.kind)
		}
		if allow := w.Header().Get("Allow"); (w.Code == 405) != (allow == "GET, HEAD, POST") || w.Code >= 400 && w.Body.String() != map[int]string{403: noToken, 405: notAllowed}[w.Code] {
			t.Errorf("%s, unguarded: %d, allow %q", what, w.Code, allow)
		}
	}
}

// A program whose import is turned off has no collector. Its page and its diagnosis still answer.
func TestNoCollector(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		if w := get(debug.Unguarded(nil), method, "http://localhost/", here); w.Code != 503 || !strings.Contains(w.Body.String(), "no collector runs here") {
			t.Errorf("%s: %d %s", method, w.Code, w.Body)
		}
	}
	if d := debug.Diagnose(t.Context(), nil, 0); d.Verdict == "" || d.String() == "" {
		t.Errorf("%+v", d)
	}
}

// The browser runs styles and script of this load only, and loads nothing else. Each handler has a
// token of its own.
func TestPageTrustsOnlyItself(t *testing.T) {
	c := newCollector(t)
	h := debug.Handler(c)
	seen := map[string]bool{}
	for range 3 {
		w := get(h, "GET", "http://localhost/", here)
		text := w.Header().Get("Content-Security-Policy") + w.Body.String()
		nonces := regexp.MustCompile(`nonce[-=]"?([A-Z0-9]{26,})`).FindAllStringSubmatch(text, -1)
		if len(nonces) != 4 || strings.Count(text, nonces[0][1]) != 4 {
			t.Fatalf("nonces: %v", nonces)
		}
		seen[nonces[0][1]] = true
		want := "default-src 'none'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; style-src 'nonce-N'; script-src 'nonce-N'"
		if got := strings.ReplaceAll(w.Header().Get("Content-Security-Policy"), nonces[0][1], "N"); got != want {
			t.Errorf("the browser may do %q, want %q", got, want)
		}
	}
	if len(seen) != 3 {
		t.Errorf("a nonce is used again: %v", seen)
	}
	a, b, again := token(t, h), token(t, debug.Handler(c)), token(t, h)
	if len(a) < 26 || a == b || a != again {
		t.Errorf("tokens %q, %q, %q", a, again, b)
	}
	if body := get(h, "GET", "http://localhost/", here).Body.String(); !strings.Contains(body, `name="token" value="`+a+`"`) {
		t.Error("the page lacks its token")
	}
}

func newCollector(t *testing.T) *gc.Collector {
	t.Helper()
	c, err := gc.New(gc.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Other web pages and proxies on this machine are refused, though they send a loopback host name.
func TestLocalRefusesPagesAndProxies(t *testing.T) {
	h := debug.Handler(newCollector(t))
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	const proxy, page = "eagergc: not through a proxy\n", "eagergc: not for other web pages: type the address, or open it from a page of this server\n"
	type request struct {
		name   string
		change func(*http.Request)
		want   string // "" = answered
	}
	var all []request
	for _, name := range []string{"Forwarded", "Via", "X-Forwarded-For", "X-Real-IP", "X-Original-Host", "X-Envoy-External-Address", "CF-Connecting-IP", "True-Client-IP", "X-Client-IP"} {
		all = append(all, request{name, header(name, "203.0.113.7"), proxy})
	}
	for _, tc := range append(all, []request{
		{"nothing", func(*http.Request) {}, ""},
		{"nginx", func(r *http.Request) { r.Proto, r.ProtoMinor, r.Close = "HTTP/1.0", 0, true }, proxy},
		{"closing", func(r *http.Request) { r.Close = true }, proxy},
		{"HTTP/2", func(r *http.Request) { r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/2.0", 2, 0 }, ""},
		{"cross-site", header("Sec-Fetch-Site", "cross-site"), page},
		{"other port", header("Sec-Fetch-Site", "same-site"), page},
		{"of the page", header("Sec-Fetch-Site", "same-origin"), ""},
		{"typed", header("Sec-Fetch-Site", "none"), ""},
		{"foreign origin", header("Origin", "https://evil.example"), page},
		{"origin at another port", header("Origin", "http://localhost:81"), page},
		{"itself", header("Origin", "http://localhost"), ""},
	}...) {
		r := httptest.NewRequest("GET", "http://localhost/debug/eagergc", nil)
		r.RemoteAddr = here
		r.Header.Set("X-Own", "for")
		tc.change(r)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if refused := w.Code == http.StatusForbidden; refused != (tc.want != "") || refused && w.Body.String() != tc.want || !refused && w.Code != http.StatusOK {
			t.Errorf("%s: %d %.100s, want %q", tc.name, w.Code, w.Body, tc.want)
		}
		checkHeaders(t, tc.name, w)
	}
}

// TestPosts: the answers to forms. One of more than 4 KiB is refused, because it is not read to its end.
func TestPosts(t *testing.T) {
	c := newCollector(t)
	h := debug.Unguarded(c)
	ended, end := context.WithCancel(t.Context())
	end() // a window ends with its request
	soon := func(r *http.Request) { *r = *r.WithContext(ended) }
	const noToken = "eagergc: needs the page's token"
	for _, tc := range []struct {
		form url.Values
		code int
		want string
	}{
		{url.Values{"do": {"diagnose"}}, 200, "Next: "},
		{url.Values{"do": {"diagnose"}, "window": {"0s"}}, 200, "Next: "},
		{url.Values{"do": {"diagnose"}, "window": {"1m"}}, 200, "Next: "},
		{url.Values{"do": {"diagnose"}, "window": {"1m1ns"}}, 400, "window=1m1ns: want a time from 0s to 1m0s, such as 10s"},
		{url.Values{"do": {"diagnose"}, "window": {"-1ns"}}, 400, "window=-1ns: want a time"},
		{url.Values{"do": {"diagnose"}, "window": {"soon"}}, 400, "window=soon: want a time"},
		{url.Values{"do": {"record"}}, 400, `do="record": want diagnose`},
		{url.Values{}, 400, `do="": want diagnose`},
		{url.Values{"do": {"diagnose"}, "token": {""}}, 403, noToken},
		{url.Values{"do": {"diagnose"}, "token": {"AAAA"}}, 403, noToken},
	} {
		before := c.Stats().Cycles[policy.TriggerExplicit]
		w := post(t, h, tc.form, soon)
		checkHeaders(t, tc.form.Encode(), w)
		if kind := w.Header().Get("Content-Type"); w.Code != tc.code || kind != "text/plain; charset=utf-8" || !strings.Contains(w.Body.String(), tc.want) ||
			(c.Stats().Cycles[policy.TriggerExplicit] > before+1) != (tc.code == 200) { // one cycle when the program is idle
			t.Errorf("%s: %d %s %.200s, want %d %s", tc.form, w.Code, kind, w.Body, tc.code, tc.want)
		}
	}
	long := url.Values{"do": {"nothing"}, "token": {token(t, h)}, "fill": {""}}
	rest := 4096 - len(long.Encode())
	for n, want := range map[int]int{rest: http.StatusBadRequest, rest + 1: http.StatusForbidden} {
		long.Set("fill", strings.Repeat("x", n))
		if w := post(t, h, long, nil); w.Code != want {
			t.Errorf("%d bytes: %d %s, want %d", len(long.Encode()), w.Code, w.Body, want)
		}
	}
	other := func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }
	if w := post(t, h, url.Values{"do": {"diagnose"}}, other); w.Code != 403 || !strings.Contains(w.Body.String(), noToken) {
		t.Errorf("from another page: %d %s", w.Code, w.Body)
	}
}

// One diagnosis runs at a time, and it ends with its request.
func TestOneAtATime(t *testing.T) {
	h := debug.Handler(newCollector(t))
	ctx, end := context.WithCancel(t.Context())
	var second *httptest.ResponseRecorder
	defer gc.SetAllocatorStats(func() (int64, int64) { return -1, -1 })
	gc.SetAllocatorStats(func() (int64, int64) { // is called while the first one runs
		if end(); second == nil {
			second = httptest.NewRecorder()
			second = post(t, h, url.Values{"do": {"diagnose"}}, nil)
		}
		return -1, -1
	})
	begin := time.Now()
	first := post(t, h, url.Values{"do": {"diagnose"}, "window": {"1m"}}, func(r *http.Request) { *r = *r.WithContext(ctx) })
	if first.Code != 200 || second.Code != 429 || second.Body.String() != "eagergc: another request is running\n" || time.Since(begin) > 30*time.Second {
		t.Errorf("after %v: %d, %d %s", time.Since(begin), first.Code, second.Code, second.Body)
	}
}

// A program whose clients sign in serves the page to those clients.
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
