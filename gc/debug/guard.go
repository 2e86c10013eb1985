package debug

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Local returns h for clients on this machine. It refuses requests from other machines, requests to
// another host name than a loopback one, requests by other web pages, and requests through a proxy.
// It detects a proxy by the headers that it adds, or by HTTP/1.0 or "Connection: close", nginx's
// defaults. A proxy that adds nothing and rewrites Host looks like a local client, so configure
// yours to not forward this path. Answers are marked as not to be stored. Local is safe for
// concurrent use.
func Local(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		noStore(w)
		switch {
		case !isLoopback(r.RemoteAddr) || !isLoopback(r.Host):
			refuse(w, "only for this machine, by a loopback address")
		case isPassedOn(r):
			refuse(w, "not through a proxy")
		case fromElsewhere(r) || isForeign(r):
			refuse(w, "not for other web pages: type the address, or open it from a page of this server")
		default:
			h.ServeHTTP(w, r)
		}
	})
}

func refuse(w http.ResponseWriter, why string) {
	http.Error(w, "eagergc: "+why, http.StatusForbidden)
}

func noStore(w http.ResponseWriter) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
}

// fromElsewhere reports whether a browser says that another web page sent the request.
func fromElsewhere(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none"
}

// isForeign reports whether a browser knows this server by another name.
func isForeign(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	_, host, _ := strings.Cut(origin, "://")
	return origin != "" && host != r.Host
}

// isPassedOn reports whether a proxy forwarded a request.
func isPassedOn(r *http.Request) bool {
	if r.Close || !r.ProtoAtLeast(1, 1) {
		return true
	}
	for name := range r.Header {
		for _, prefix := range []string{"Forwarded", "Via", "X-Forwarded", "X-Real-Ip", "X-Original-", "X-Envoy-", "Cf-", "True-Client-Ip", "X-Client-Ip"} {
			if strings.HasPrefix(name, prefix) {
				return true
			}
		}
	}
	return false
}

// isLoopback reports whether an address, with or without a port, is a loopback one.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	if host == "localhost" {
		return true
	}
	ip, _ := netip.ParseAddr(host)
	return ip.Unmap().IsLoopback() // the zero address, of text that cannot be read, is no loopback one
}
