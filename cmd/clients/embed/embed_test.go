package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

func ask(t *testing.T, h http.Handler, method, path, body string) (answer string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	if w.Code != http.StatusOK {
		t.Errorf("%s: %d %s", path, w.Code, w.Body)
	}
	return w.Body.String()
}

// TestEagerAnswersTheSame: requests at once get the same bits with eager as without it.
func TestEagerAnswersTheSame(t *testing.T) {
	var requests, want []string
	for n := range 9 {
		texts := []string{"w5 w6 w7", "unknown"}
		for i := range n {
			texts = append(texts, strings.Repeat(fmt.Sprintf("w%d ", 9+i), 1+20*i))
		}
		body, _ := json.Marshal(map[string]any{"texts": texts})
		requests = append(requests, string(body))
	}
	for _, backend := range []string{"simplego:ops_sequential", "eager:simplego:ops_sequential"} {
		t.Setenv("BACKEND", backend)
		h, err := open(t.TempDir(), encoder{layers: 2, hidden: 48, heads: 12, inner: 96, words: 50})
		if err != nil {
			t.Fatal(err)
		}
		if seen := strings.Contains(ask(t, h, "GET", "/memory", ""), "live"); seen != strings.HasPrefix(backend, "eager") {
			t.Errorf("%s: a collector counts buffers: %t", backend, seen)
		}
		got := make([]string, len(requests))
		var all sync.WaitGroup
		for i := range got {
			all.Go(func() { got[i] = ask(t, h, "POST", "/embed", requests[i]) })
		}
		all.Wait()
		if want == nil {
			want = got
		}
		for i := range got {
			var answer struct{ Embeddings [][]float32 }
			if err := json.Unmarshal([]byte(got[i]), &answer); err != nil || len(answer.Embeddings) != i+2 || got[i] != want[i] {
				t.Errorf("%s, request %d: %v, %.300s\nwant %.300s", backend, i, err, got[i], want[i])
			} else if v := answer.Embeddings; len(v[0]) != 48 || v[0][0] == 0 || v[0][0] == v[1][0] {
				t.Errorf("%s, request %d: %v", backend, i, v)
			}
		}
	}
}
