package canon

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Scheme is the prefix of every key: the version of the rules that make it.
const Scheme = "h1:"

// Exclusions are the parts of a request body that keys of this scheme leave out: none.
func Exclusions() []string { return nil }

// Key is the identity of a request.
type Key struct {
	Key       string // "h1:" and 16 hex digits: xxhash64 of Canonical
	Canonical []byte // length-prefixed method, path, query, kind of body and body; equal exactly when the requests are
	Raw       bool   // the body took part by its raw bytes, or by its digest when it was cut
	Why       string // why it did; "" when Raw is false
}

// Kinds of body, so that bytes of one kind never equal those of another.
const (
	kindNone      = "none"
	kindJSON      = "json"
	kindMultipart = "multipart"
	kindRaw       = "raw"
	kindCut       = "cut"
)

// RequestKey is the key of req. Headers do not take part, but for the content coding, and the type of a multipart
// body. Its secrets must be masked already: a key is never made of one.
func RequestKey(req *exchange.Request) Key {
	body, _ := bodyForm(req)
	return keyOf(req, body)
}

func keyOf(req *exchange.Request, body form) Key {
	path, query := splitTarget(req.Target)
	canonical := make([]byte, 0, len(req.Method)+len(path)+len(query)+len(body.text)+32)
	for _, part := range []string{req.Method, path, sortQuery(query), body.kind} {
		canonical = appendPart(canonical, part)
	}
	canonical = appendPart(canonical, body.text)

	var sum [8]byte
	binary.BigEndian.PutUint64(sum[:], xxhash.Sum64(canonical))
	return Key{Key: Scheme + hex.EncodeToString(sum[:]), Canonical: canonical, Raw: body.why != "", Why: body.why}
}

func appendPart[T string | []byte](dst []byte, part T) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(part)))
	return append(dst, part...)
}

// splitTarget parts a request target in path and query; the query begins with its '?' so that an empty one is not the
// same as none. Scheme and host of the absolute form are left out: they name the proxy, not the request.
func splitTarget(target string) (path, query string) {
	if i := strings.Index(target, "://"); i > 0 && !strings.ContainsAny(target[:i], "/?") {
		rest := target[i+len("://"):]
		if j := strings.IndexAny(rest, "/?"); j >= 0 {
			target = rest[j:]
		} else {
			target = "/"
		}
	}
	if i := strings.IndexByte(target, '?'); i >= 0 {
		return target[:i], target[i:]
	}
	return target, ""
}

// sortQuery orders parameters by name. Those of one name keep their order, which servers may read; percent-encoding
// stays as it is.
func sortQuery(query string) string {
	if !strings.Contains(query, "&") {
		return query
	}
	params := strings.Split(query[1:], "&")
	slices.SortStableFunc(params, func(a, b string) int {
		nameA, _, _ := strings.Cut(a, "=")
		nameB, _, _ := strings.Cut(b, "=")
		return strings.Compare(nameA, nameB)
	})
	return "?" + strings.Join(params, "&")
}

// form is a body as it takes part in the key; why is set when it is not canonical.
type form struct {
	kind, why string
	text      []byte
}

// bodyForm is the form of a body; same says that it is JSON whose interchange form is the same text.
func bodyForm(req *exchange.Request) (f form, same bool) {
	if !req.Body.Whole() {
		size := binary.AppendUvarint(nil, uint64(req.Body.Size))
		return form{kind: kindCut, why: "body cut", text: append(size, req.Body.Sum()...)}, false
	}
	body := req.Body.Bytes()
	if coding := contentCoding(req.Headers); coding != "" {
		return form{kind: kindRaw + " " + coding, why: "content coding " + coding, text: body}, false
	}
	if len(body) == 0 {
		return form{kind: kindNone}, false
	}
	contentType, _ := exchange.HeaderValue(req.Headers, "Content-Type")
	if isMultipart(contentType) {
		media, parts, err := splitMultipart(contentType, body)
		if err != nil {
			return form{kind: kindRaw, why: err.Error(), text: body}, false
		}
		return form{kind: kindMultipart + " " + media, text: parts}, false
	}
	if !mayBeJSON(contentType) {
		return form{kind: kindRaw, why: "content type " + contentType, text: body}, false
	}
	same = true
	text, err := canonical(body, func(dst, number []byte) ([]byte, error) {
		same = same && sameInPython(number)
		return append(dst, number...), nil
	})
	if err != nil {
		return form{kind: kindRaw, why: err.Error(), text: body}, false
	}
	return form{kind: kindJSON, text: text}, same
}

// contentCoding is the list of content codings of a message in lower case, "" for none or identity.
func contentCoding(hs []exchange.Header) string {
	var codings []string
	for _, h := range hs {
		if !strings.EqualFold(h.Name, "Content-Encoding") {
			continue
		}
		for c := range strings.SplitSeq(h.Value, ",") {
			if c = strings.ToLower(strings.TrimSpace(c)); c != "" && c != "identity" {
				codings = append(codings, c)
			}
		}
	}
	return strings.Join(codings, ",")
}

func isMultipart(contentType string) bool {
	return len(contentType) > 10 && bytes.EqualFold([]byte(contentType[:10]), []byte("multipart/"))
}

// mayBeJSON reports whether a body of this type is read as JSON: the types that say so, none, and the one that curl
// sends when it is told nothing. In other types white space may have a meaning.
func mayBeJSON(contentType string) bool {
	t := strings.ToLower(contentType)
	return t == "" || strings.Contains(t, "json") || strings.HasPrefix(t, "application/x-www-form-urlencoded")
}
