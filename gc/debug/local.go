package debug

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Local returns h for reading from this machine only: requests that come from
// elsewhere, that are addressed to it by another name than a loopback one, or
// that are neither GET nor HEAD are refused. Answers are not to be stored.
func Local(h http.Handler) http.Handler {
	h = readOnly(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLoopback(r.RemoteAddr) || !isLoopback(r.Host) {
			http.Error(w, "eagergc: only for this machine, by a loopback address", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func readOnly(h http.Handler) http.Handler {
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
