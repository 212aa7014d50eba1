package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
)

// policy is what a page of ours may load and do: our own style, script and pictures, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// guarded sets what a browser must hold to with everything that comes from here, and refuses what a page of another site
// asks for: it could not read the answer, but it could make us work.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if foreign(r) && !linked(r) {
			fail(w, http.StatusForbidden, errors.New("another site's page has no business here"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// foreign reports whether a page from elsewhere asks, or one of another port of this host, whose site is the same to a
// browser. Who is no browser says nothing of it.
func foreign(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" && !strings.EqualFold(origin, "http://"+r.Host) && !strings.EqualFold(origin, "https://"+r.Host) {
		return true
	}
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none"
}

// linked reports whether a person followed a link to one of the pages: what is no page, or shows within another page, is
// not reached so.
func linked(r *http.Request) bool {
	page := r.URL.Path == "/" || r.URL.Path == "/runs" || r.URL.Path == "/compare" || strings.HasPrefix(r.URL.Path, "/runs/") || strings.HasPrefix(r.URL.Path, "/takes/") || strings.HasPrefix(r.URL.Path, "/exchanges/")
	return page && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// ownHost refuses requests that name another host than the listener's: loopback names, or the very address dialed.
func ownHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		host = strings.Trim(host, "[]")
		ip := net.ParseIP(host)
		if !strings.EqualFold(host, "localhost") && (ip == nil || !ip.IsLoopback() && !isLocal(r, ip)) {
			fail(w, http.StatusForbidden, fmt.Errorf("host %q is not an address of this listener", r.Host))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// keyed refuses requests without the key, when there is one. Health is no exception: it names the run and its engine.
func (s *Server) keyed(next http.Handler) http.Handler {
	if s.o.Key == "" {
		return next
	}
	want := sha256.Sum256([]byte(s.o.Key)) // of equal length, so that the time to compare tells nothing
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, ok := sentKey(r)
		got := sha256.Sum256([]byte(key))
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 || !ok {
			w.Header().Add("WWW-Authenticate", "Bearer")
			w.Header().Add("WWW-Authenticate", `Basic realm="benchproxy: any name, and the key as password", charset="UTF-8"`)
			fail(w, http.StatusUnauthorized, errors.New("this admin listener wants its key as a bearer token"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isLocal(r *http.Request, ip net.IP) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && addr.IP.Equal(ip)
}

// sentKey is the key that a request carries: as a bearer token, or as the password that a browser asks its user for.
func sentKey(r *http.Request) (key string, ok bool) {
	if _, password, basic := r.BasicAuth(); basic {
		return password, true
	}
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(key), strings.EqualFold(scheme, "Bearer")
}
