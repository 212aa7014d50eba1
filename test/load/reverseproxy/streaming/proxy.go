package streaming

import (
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
)

// New is a reverse proxy in front of the engine at to.
func New(to *url.URL) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		FlushInterval: -1, // at once
		ErrorLog:      log.New(io.Discard, "", 0),
		Transport:     &http.Transport{MaxIdleConnsPerHost: 1024, DisableCompression: true},
	}
}
