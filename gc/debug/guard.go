package debug

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Local returns h for this machine's own clients. It refuses requests that come from elsewhere, requests that are
// addressed to it by another name than a loopback one, what another web page has asked for, and what a proxy has
// passed on. A proxy is told by the headers that it adds, or by HTTP/1.0 and "Connection: close", which is what nginx
// speaks unless told otherwise; one that adds nothing and rewrites Host looks like a client of this machine: let none
// pass requests to this path. Answers are marked as not to be stored. It is safe for concurrent use.
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

// fromElsewhere reports whether a browser says that another web page has asked.
func fromElsewhere(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none"
}

// isForeign reports whether a browser says that it knows this server by another name.
func isForeign(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	_, host, _ := strings.Cut(origin, "://")
	return origin != "" && host != r.Host
}

// isPassedOn reports whether a proxy has passed a request on.
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

// isLoopback reports whether an address with or without a port is this machine's.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	if host == "localhost" {
		return true
	}
	ip, _ := netip.ParseAddr(host)
	return ip.Unmap().IsLoopback() // what could not be read is no address, and not this machine's
}
