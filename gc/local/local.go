// Package local keeps a page about a program to the machine that the program
// runs on.
package local

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Only returns h for this machine's own clients. It refuses requests that come
// from elsewhere, requests that are addressed to it by another name than a
// loopback one, requests that a proxy has passed on (it may do so for any machine,
// and write any name), and those that [ReadOnly] refuses. It is safe for concurrent
// use.
func Only(h http.Handler) http.Handler {
	h = ReadOnly(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLoopback(r.RemoteAddr) || !isLoopback(r.Host) || isPassedOn(r.Header) {
			http.Error(w, "eagergc: only for this machine, by a loopback address", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// isPassedOn reports whether a proxy has passed a request on.
func isPassedOn(h http.Header) bool {
	for _, name := range []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip"} {
		if _, ok := h[name]; ok {
			return true
		}
	}
	return false
}

// ReadOnly returns h for GET and HEAD alone; other methods are refused. Answers
// are marked as not to be stored. It is safe for concurrent use.
func ReadOnly(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "eagergc: read-only", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		h.ServeHTTP(w, r)
	})
}

// isLoopback reports whether an address with or without a port is this machine's.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
