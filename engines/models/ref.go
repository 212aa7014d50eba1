package models

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// DefaultHub is where hf:// names lead.
const DefaultHub = "https://huggingface.co"

// File is a file to be fetched.
type File struct {
	URL  string // without a token
	Path string // where it is put
}

// Place says where names lead and where files go.
type Place struct {
	Hub    string // base URL of the hub; "" = DefaultHub
	Mirror string // base URL that hf:// names lead to in the place of the hub; "" = the hub
	Dir    string // files go below it
	Out    string // path of the one file, in the place of what its name and Dir make; shards go beside it
}

// Daemon names a model that a daemon pulls by itself.
type Daemon struct {
	Kind string // ollama or prism
	Name string
}

// The daemons.
const (
	KindOllama = "ollama"
	KindPrism  = "prism"
)

// daemonName is a model's name as daemons have it. It begins with no dash, so that no program takes it for a flag.
var daemonName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,255}$`)

// DaemonOf is the daemon's model that a reference names: ollama:NAME or prism:NAME. ok is false for references to files.
// The error wraps exchange.ErrUsage.
func DaemonOf(ref string) (d Daemon, ok bool, err error) {
	kind, name, found := strings.Cut(ref, ":")
	if !found || kind != KindOllama && kind != KindPrism {
		return Daemon{}, false, nil
	}
	if !daemonName.MatchString(name) {
		return Daemon{}, true, refError(ref, "%q is no name of a model", name)
	}
	return Daemon{Kind: kind, Name: name}, true, nil
}

func refError(ref, format string, args ...any) error {
	return &exchange.Error{Op: "resolve model", Object: ref, Side: exchange.SideClient,
		Cause: fmt.Errorf("%w: %s", exchange.ErrUsage, fmt.Sprintf(format, args...)),
		Hint:  "a model is hf://OWNER/REPO/FILE (REPO@REVISION), a URL, ollama:NAME or prism:NAME"}
}

// Resolve lists the files of a reference, a shard of a split GGUF standing for all of them. hf://OWNER/REPO/FILE goes to
// DIR/OWNER/REPO/FILE, so that two files of one name do not meet; a URL to its last element below DIR. The error wraps
// exchange.ErrUsage.
func Resolve(ref string, p Place) ([]File, error) {
	from, local, err := located(ref, p)
	if err != nil {
		return nil, err
	}
	target := filepath.Join(p.Dir, filepath.FromSlash(local))
	if p.Out != "" {
		target = p.Out
	}
	names, err := Shards(path.Base(from.Path))
	if err != nil {
		return nil, refError(ref, "%v", err)
	}
	targets, err := Shards(filepath.Base(target))
	if err != nil || len(targets) != len(names) {
		return nil, refError(ref, "the file has %d parts, and %s does not name so many", len(names), filepath.Base(target))
	}
	files := make([]File, len(names))
	for i, name := range names {
		u := *from
		u.Path, u.RawPath = path.Join(path.Dir(from.Path), name), ""
		if raw := from.EscapedPath(); raw != from.Path {
			u.RawPath = path.Dir(raw) + "/" + url.PathEscape(name)
		}
		files[i] = File{URL: u.String(), Path: filepath.Join(filepath.Dir(target), targets[i])}
	}
	return files, nil
}

// located is the URL of a reference and the path of its file below the directory, with slashes.
func located(ref string, p Place) (from *url.URL, local string, err error) {
	if rest, hub := strings.CutPrefix(ref, "hf://"); hub {
		return onHub(ref, rest, p)
	}
	u, err := url.Parse(ref)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return nil, "", refError(ref, "it is no reference to a model")
	}
	if u.User != nil {
		return nil, "", refError(u.Redacted(), "a URL with credentials is not taken")
	}
	name := path.Base(u.Path)
	if err := harmless(name); err != nil {
		return nil, "", refError(ref, "%v", err)
	}
	u.Fragment = ""
	return u, name, nil
}

// onHub reads OWNER/REPO[@REVISION]/PATH.
func onHub(ref, rest string, p Place) (from *url.URL, local string, err error) {
	parts := strings.Split(rest, "/")
	if len(parts) < 3 {
		return nil, "", refError(ref, "it names no file of a repository")
	}
	repo, revision, _ := strings.Cut(parts[1], "@")
	if revision, err = url.PathUnescape(cmp.Or(revision, "main")); err != nil {
		return nil, "", refError(ref, "its revision is not spelled well")
	}
	for _, name := range append([]string{parts[0], repo}, parts[2:]...) {
		if err := harmless(name); err != nil {
			return nil, "", refError(ref, "%v", err)
		}
	}
	base, err := url.Parse(cmp.Or(p.Mirror, p.Hub, DefaultHub))
	if err != nil || base.Host == "" {
		return nil, "", refError(ref, "the hub %q is no URL", cmp.Or(p.Mirror, p.Hub))
	}
	elements := []string{url.PathEscape(parts[0]), url.PathEscape(repo), "resolve", url.PathEscape(revision)}
	for _, name := range parts[2:] {
		elements = append(elements, url.PathEscape(name))
	}
	from, err = url.Parse(strings.TrimRight(base.String(), "/") + "/" + strings.Join(elements, "/"))
	if err != nil {
		return nil, "", refError(ref, "it makes no URL: %v", err)
	}
	return from, strings.Join(append([]string{parts[0], repo}, parts[2:]...), "/"), nil
}

// harmless refuses an element of a path that leads elsewhere or is none on some system.
func harmless(name string) error {
	switch {
	case name == "" || name == "." || name == ".." || name == "/":
		return fmt.Errorf("%q is no name of a file", name)
	case strings.ContainsAny(name, "/\\:\x00") || strings.HasPrefix(name, "-") || !filepath.IsLocal(name):
		return fmt.Errorf("%q is no harmless name of a file", name)
	}
	for _, r := range name {
		if r < 0x20 || r == 0x7f {
			return fmt.Errorf("%q is no harmless name of a file", name)
		}
	}
	return nil
}

// mostShards is how many parts a file has at most.
const mostShards = 1000

var shardName = regexp.MustCompile(`^(.*)-([0-9]{5})-of-([0-9]{5})\.gguf$`)

// Shards are the names of all parts of a split GGUF, of which name is one; the name itself where it is no part of any.
func Shards(name string) ([]string, error) {
	m := shardName.FindStringSubmatch(name)
	if m == nil {
		return []string{name}, nil
	}
	at, err1 := strconv.Atoi(m[2])
	n, err2 := strconv.Atoi(m[3])
	if err1 != nil || err2 != nil || at < 1 || at > n || n > mostShards {
		return nil, fmt.Errorf("%q is part %s of %s", name, m[2], m[3])
	}
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s-%05d-of-%05d.gguf", m[1], i+1, n)
	}
	return out, nil
}
