package models

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
)

// Bounds of a listing.
const (
	mostPages = 20
	mostPage  = 16 << 20 // bytes
)

// tree is the place of a file in the listing of a repository of the hub.
type tree struct {
	base     string // URL of the hub, or of a mirror of it, without a final slash
	repo     string // OWNER/REPO
	revision string
	name     string // of the file in the repository, with slashes
}

// onTree matches the path of a file of a repository: OWNER/REPO/resolve/REVISION/NAME below the hub's own path.
var onTree = regexp.MustCompile(`^(.*)/([^/]+/[^/]+)/resolve/([^/]+)/(.+)$`)

// treeOf is where the hub lists a file; nil for a URL of another form. Names are as they are in URLs.
func treeOf(address string) *tree {
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	m := onTree.FindStringSubmatch(u.EscapedPath())
	if m == nil {
		return nil
	}
	name, err := url.PathUnescape(m[4])
	if err != nil {
		return nil
	}
	return &tree{base: u.Scheme + "://" + u.Host + m[1], repo: m[2], revision: m[3], name: name}
}

// treeEntry is a file or a directory of a listing. Large files have their digest under lfs.
type treeEntry struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
	LFS  *struct {
		OID  string `json:"oid"`
		Size int64  `json:"size"`
	} `json:"lfs"`
}

// listed asks the hub's listing for size and digest of a file, where the answers on the way to it do not tell. What is not
// told stays unknown: a listing that cannot be had keeps no file from being fetched. revision is the commit that the file
// came from, "" for the one that was asked for.
func (r *origin) listed(ctx context.Context, t *tree, revision string) (size int64, sha256 string) {
	if revision == "" {
		revision = t.revision
	}
	next := t.base + "/api/models/" + t.repo + "/tree/" + revision
	if dir := path.Dir(t.name); dir != "." {
		next += "/" + (&url.URL{Path: dir}).EscapedPath()
	}
	for range mostPages {
		entries, more := r.page(ctx, next, 3)
		for _, e := range entries {
			switch {
			case e.Path != t.name:
			case e.LFS == nil:
				return e.Size, ""
			case hexDigest.MatchString(strings.ToLower(e.LFS.OID)):
				return e.LFS.Size, strings.ToLower(e.LFS.OID)
			default:
				return -1, ""
			}
		}
		if next = more; next == "" {
			break
		}
	}
	return -1, ""
}

// nextPage matches what a listing says of its next page.
var nextPage = regexp.MustCompile(`<([^>]+)>\s*;\s*rel="?next"?`)

// page is one page of a listing, and the URL of the next one, "" for none. Only the same host is asked for more.
func (r *origin) page(ctx context.Context, address string, hops int) (entries []treeEntry, next string) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, ""
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, ""
	}
	req.Header.Set("User-Agent", "benchproxy")
	req.Header.Set("Accept", "application/json")
	if r.trusted(u) {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, ""
	}
	defer resp.Body.Close()
	if to, err := redirected(resp, u); err != nil || to != nil && (hops == 0 || hostPort(to) != hostPort(u)) {
		return nil, ""
	} else if to != nil { // a repository that has another name by now
		return r.page(ctx, to.String(), hops-1)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, mostPage))
	if err != nil || resp.StatusCode != http.StatusOK || json.Unmarshal(raw, &entries) != nil {
		return nil, ""
	}
	if m := nextPage.FindStringSubmatch(resp.Header.Get("Link")); m != nil {
		if to, err := u.Parse(m[1]); err == nil && to.Scheme == u.Scheme && hostPort(to) == hostPort(u) {
			next = to.String()
		}
	}
	return entries, next
}
