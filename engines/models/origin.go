package models

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// mostRedirects is how many redirects are followed.
const mostRedirects = 10

// origin asks servers for files. It follows redirects itself, since what the hub says of a file stands on its redirects.
type origin struct {
	client *http.Client
	hub    *url.URL // the token's; nil when there is no token
	token  string
}

func newOrigin(o Options) (*origin, error) {
	transport := o.Transport
	if transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.DisableCompression = true
		t.ResponseHeaderTimeout = o.Stall
		transport = t
	}
	r := &origin{client: &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	if o.Token == "" {
		return r, nil
	}
	hub, err := url.Parse(o.Hub)
	if err != nil || hub.Host == "" {
		return nil, fmt.Errorf("read URL of hub %q", o.Hub)
	}
	if strings.ContainsAny(o.Token, "\r\n") {
		return nil, fmt.Errorf("read token: it has a line end in it")
	}
	r.hub, r.token = hub, o.Token
	return r, nil
}

// trusted says whether a URL may see the token.
func (r *origin) trusted(u *url.URL) bool {
	return r.hub != nil && u.Scheme == r.hub.Scheme && strings.EqualFold(hostPort(u), hostPort(r.hub)) && (u.Scheme == "https" || loopback(u.Hostname()))
}

// hostPort is the host of a URL with its port, stated or not.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// told is what servers on the way said of a file.
type told struct {
	size   int64  // of the whole, from the hub; -1 when not told
	sha256 string // hex, of the whole; "" when not told
	commit string // of the repository
	hub    bool   // the last answer came from the server that was asked, not from one that it leads to
}

// hexDigest is a SHA-256. Tags of other lengths are digests of other kinds, such as Git's.
var hexDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)

// hear takes what a hop says. Only the server that was asked, and those of its host, are heard: further ones do not know.
func (t *told) hear(h http.Header) {
	if tag := strings.ToLower(strings.Trim(strings.TrimPrefix(h.Get("X-Linked-Etag"), "W/"), `"`)); hexDigest.MatchString(tag) {
		t.sha256 = tag
	}
	if n, err := strconv.ParseInt(h.Get("X-Linked-Size"), 10, 64); err == nil && n >= 0 {
		t.size = n
	}
	if c := h.Get("X-Repo-Commit"); c != "" {
		t.commit = c
	}
}

// open asks for the bytes of a URL from an offset on, 0 for all. ifRange makes the server send all of a file that is
// another one by now. The body is to be closed.
func (r *origin) open(ctx context.Context, address string, from int64, ifRange string) (*http.Response, told, error) {
	facts := told{size: -1}
	first, err := url.Parse(address)
	if err != nil {
		return nil, facts, err
	}
	u := first
	for range mostRedirects + 1 {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err != nil {
			return nil, facts, err
		}
		req.Header.Set("Accept-Encoding", "identity")
		req.Header.Set("User-Agent", "benchproxy")
		if from > 0 {
			req.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
			if ifRange != "" {
				req.Header.Set("If-Range", ifRange)
			}
		}
		if r.trusted(u) {
			req.Header.Set("Authorization", "Bearer "+r.token)
		}
		resp, err := r.client.Do(req)
		if err != nil {
			return nil, facts, err
		}
		if facts.hub = hostPort(u) == hostPort(first); facts.hub {
			facts.hear(resp.Header)
		}
		next, err := redirected(resp, u)
		if err != nil {
			return nil, facts, err
		}
		if next == nil {
			return resp, facts, nil
		}
		u = next
	}
	return nil, facts, &fault{cause: fmt.Errorf("more than %d redirects", mostRedirects)}
}

// redirected is where a response leads, nil for none. The response is closed then.
func redirected(resp *http.Response, from *url.URL) (*url.URL, error) {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be used again
	resp.Body.Close()
	next, err := from.Parse(resp.Header.Get("Location"))
	if err != nil || resp.Header.Get("Location") == "" || next.Scheme != "https" && next.Scheme != "http" {
		return nil, &fault{cause: fmt.Errorf("a redirect leads to %q", resp.Header.Get("Location"))}
	}
	if from.Scheme == "https" && next.Scheme == "http" {
		return nil, &fault{cause: fmt.Errorf("a redirect leads from https to %s", next.Scheme+"://"+next.Host)}
	}
	return next, nil
}

// mostAfter is the longest time that a server may make us wait.
const mostAfter = 2 * time.Minute

// retryAfter is how long a response asks to wait: a number of seconds, or until a date by the server's own clock.
func retryAfter(h http.Header) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return min(time.Duration(n)*time.Second, mostAfter)
	}
	until, err := http.ParseTime(text)
	now, err2 := http.ParseTime(h.Get("Date"))
	if err != nil || err2 != nil {
		return 0
	}
	return min(max(until.Sub(now), 0), mostAfter)
}
