package models

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
)

// sideServer is the guilty side of most failures here: whoever serves the file.
const sideServer exchange.Side = "server"

// fault is why an attempt did not fetch a file.
type fault struct {
	cause error
	retry bool          // a further attempt may do better
	after time.Duration // how long the server asks to wait
	hint  string
}

func (f *fault) Error() string { return f.cause.Error() }
func (f *fault) Unwrap() error { return f.cause }

func again(format string, args ...any) *fault {
	return &fault{cause: fmt.Errorf(format, args...), retry: true}
}

func final(format string, args ...any) *fault { return &fault{cause: fmt.Errorf(format, args...)} }

// errStalled cuts a request whose server sends nothing.
var errStalled = errors.New("the server sent nothing for too long")

// download fetches one file.
type download struct {
	file   File
	o      *Options
	origin *origin
	disk   *disk

	part      *part
	result    Result
	whole     bool  // the server's ranges are not to be trusted: everything is asked for
	mismatch  int   // how often the whole had another digest than the hub told
	listing   *told // what the hub's listing tells; nil before it was asked
	mediaType string
	state     atomic.Pointer[Progress]
}

// Run fetches the file, however often that takes. What was fetched stays for a later Run when it fails or ctx ends.
func (d *download) Run(ctx context.Context) (Result, error) {
	p, err := openPart(ctx, d.file.Path, d.file.URL, d.o.Mode == ModeForce)
	if err != nil {
		return d.failed(err)
	}
	d.part = p
	defer p.close()
	if there, err := isFile(d.file.Path); err != nil || there >= 0 && d.o.Mode != ModeForce { // another process was faster
		if err != nil {
			return d.failed(err)
		}
		d.result.Bytes, d.result.Kept = there, true
		d.tell(PhaseDone)
		return d.result, p.drop()
	}
	defer d.disk.release(d)
	d.result.Resumed = p.have
	for tries, most := 0, p.have; ; {
		err := d.attempt(ctx)
		if err == nil {
			err = d.verify()
		}
		if err == nil {
			return d.finished()
		}
		var f *fault
		if ctx.Err() != nil {
			return d.failed(context.Cause(ctx))
		}
		if !errors.As(err, &f) || !f.retry {
			return d.failed(err)
		}
		if p.have > most { // it goes on, if slowly
			tries, most = 0, p.have
		}
		if tries++; tries >= d.o.Tries {
			return d.failed(fmt.Errorf("%d attempts: %w", tries, err))
		}
		d.tell(PhaseWaiting)
		if err := sleep(ctx, max(f.after, backoff(tries))); err != nil {
			return d.failed(err)
		}
	}
}

// backoff is the time before the attempt that follows so many in vain: 1, 2, 4 ... 30 s.
func backoff(tries int) time.Duration {
	return min(time.Second<<min(tries-1, 5), 30*time.Second)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (d *download) failed(err error) (Result, error) {
	d.tell(PhaseFailed)
	e := &exchange.Error{Op: "download model file", Object: redact.URL(d.file.URL), Side: sideServer, Cause: err}
	var f *fault
	if errors.As(err, &f) {
		e.Hint = f.hint
	} else {
		e.Side = ""
	}
	if errors.Is(err, exchange.ErrNoSpace) {
		e.Side = exchange.SideClient
	}
	return d.result, e
}

func (d *download) finished() (Result, error) {
	d.result.Bytes, d.result.SHA256 = d.part.have, "sha256:"+d.part.sum()
	d.result.Checked = CheckedNot
	switch {
	case d.part.note.SHA256 != "":
		d.result.Checked = CheckedDigest
	case d.part.note.Size >= 0:
		d.result.Checked = CheckedSize
	}
	if err := d.part.finish(); err != nil {
		return d.failed(err)
	}
	d.tell(PhaseDone)
	return d.result, nil
}

// attempt asks for what is missing and takes what comes. It is nil when the file is whole, as far as its size tells.
func (d *download) attempt(outer context.Context) error {
	ctx, cancel := context.WithCancelCause(outer)
	defer cancel(nil)
	watchdog := time.AfterFunc(d.o.Stall, func() { cancel(errStalled) })
	defer watchdog.Stop()
	if p := d.part; p.have > 0 && (d.whole || p.note.validator() == "" && p.note.SHA256 == "") {
		if err := p.restart(); err != nil {
			return err
		}
		d.result.Restarts++
	}
	d.tell(PhaseLoading)
	resp, facts, err := d.origin.open(ctx, d.file.URL, d.part.have, d.part.note.ifRange())
	if err != nil {
		return unanswered(ctx, err)
	}
	defer resp.Body.Close()
	d.lookUp(ctx, &facts)
	watchdog.Reset(d.o.Stall)
	length, err := d.accept(resp, facts)
	if err != nil || length == 0 {
		return err
	}
	return d.take(ctx, resp, length, watchdog)
}

// lookUp adds what the hub's listing tells, once, where the way to the file did not tell its digest.
func (d *download) lookUp(ctx context.Context, facts *told) {
	t := treeOf(d.file.URL)
	if facts.sha256 != "" || t == nil {
		return
	}
	if d.listing == nil {
		d.listing = &told{size: -1}
		d.listing.size, d.listing.sha256 = d.origin.listed(ctx, t, facts.commit)
	}
	facts.sha256 = d.listing.sha256
	if facts.size < 0 {
		facts.size = d.listing.size
	}
}

// unanswered says why a request got no answer. Its URL is left out: redirects may have led to a signed one.
func unanswered(ctx context.Context, err error) error {
	var f *fault
	if errors.As(err, &f) {
		return f
	}
	if errors.Is(context.Cause(ctx), errStalled) {
		return &fault{cause: errStalled, retry: true}
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var cert *tls.CertificateVerificationError
	return &fault{cause: err, retry: !errors.As(err, &cert)}
}

// accept decides what a response is worth, and empties the part when what it holds is not the beginning of what comes.
// length is how many bytes are due: -1 when it is not told, 0 when none are.
func (d *download) accept(resp *http.Response, facts told) (length int64, err error) {
	if c := resp.Header.Get("Content-Encoding"); c != "" && !strings.EqualFold(c, "identity") {
		return 0, final("the server packs the file as %s, which it was not asked for", c)
	}
	d.mediaType = resp.Header.Get("Content-Type")
	switch resp.StatusCode {
	case http.StatusOK:
		return d.acceptWhole(resp, facts)
	case http.StatusPartialContent:
		return d.acceptRange(resp, facts)
	case http.StatusRequestedRangeNotSatisfiable:
		return d.acceptEnd(resp, facts)
	}
	return 0, refused(resp, facts)
}

// refused is what an answer without the file means.
func refused(resp *http.Response, facts told) *fault {
	f := final("the server answers %s", resp.Status)
	switch code := resp.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		if !facts.hub { // a signed link that has run out: the hub makes another one
			f.retry = true
			return f
		}
		f.hint = "the model may be gated: accept its conditions on the hub, and give a token that may read it (HF_TOKEN)"
	case code == http.StatusNotFound || code == http.StatusGone:
		f.hint = "look up the name of the file at its origin"
	case code == http.StatusRequestTimeout || code == http.StatusTooEarly || code == http.StatusTooManyRequests || code >= 500:
		f.retry, f.after = true, retryAfter(resp.Header)
	}
	return f
}

// noteOf is what a response and the hub say of the file. size is that of the whole by the server, -1 when it is not told.
func (d *download) noteOf(resp *http.Response, facts told, size int64) (note, error) {
	n := note{URL: d.file.URL, ETag: resp.Header.Get("ETag"), Modified: resp.Header.Get("Last-Modified"), Size: size, SHA256: facts.sha256}
	if strings.HasPrefix(n.ETag, "W/") {
		n.ETag = "" // it does not promise the same bytes
	}
	if facts.size >= 0 && size >= 0 && facts.size != size {
		return n, again("the file has %d bytes by the hub and %d by the server it leads to", facts.size, size)
	}
	if size < 0 {
		n.Size = facts.size
	}
	d.result.Commit = facts.commit
	return n, nil
}

func (d *download) acceptWhole(resp *http.Response, facts told) (int64, error) {
	if d.part.have > 0 {
		if err := d.part.restart(); err != nil {
			return 0, err
		}
		d.result.Restarts++
	}
	n, err := d.noteOf(resp, facts, resp.ContentLength)
	if err != nil {
		return 0, err
	}
	if n.Size < 0 && resp.ProtoMajor == 1 && len(resp.TransferEncoding) == 0 {
		return 0, final("the server does not say how long the file is, so that its end cannot be told from a cut")
	}
	if err := d.disk.reserve(d, n.Size); err != nil {
		return 0, err
	}
	return n.Size, d.part.keep(n)
}

func (d *download) acceptRange(resp *http.Response, facts told) (int64, error) {
	from, to, size, ok := contentRange(resp.Header.Get("Content-Range"))
	if !ok || from != d.part.have || resp.ContentLength >= 0 && resp.ContentLength != to-from+1 {
		d.whole = true
		return 0, again("the server was asked for the bytes from %d on and answers %q with %d bytes", d.part.have, resp.Header.Get("Content-Range"), resp.ContentLength)
	}
	n, err := d.noteOf(resp, facts, size)
	if err != nil {
		return 0, err
	}
	if d.part.note.contradicts(n) {
		d.whole = true
		return 0, again("the file has changed since its download began")
	}
	if n.SHA256 == "" && d.part.note.SHA256 == "" && d.part.note.ETag != "" && n.ETag == "" {
		d.whole = true
		return 0, again("the server sends a part, and does not say that it is one of the same file")
	}
	if n.SHA256 == "" {
		n.SHA256 = d.part.note.SHA256
	}
	if n.Size < 0 {
		n.Size = d.part.note.Size
	}
	if err := d.disk.reserve(d, n.Size-from); err != nil {
		return 0, err
	}
	return to - from + 1, d.part.keep(n)
}

// contradicts says whether two notes are of different files. Where both have the digest, no tag counts against it.
func (n *note) contradicts(other note) bool {
	if n.Size >= 0 && other.Size >= 0 && n.Size != other.Size {
		return true
	}
	if n.SHA256 != "" && other.SHA256 != "" {
		return n.SHA256 != other.SHA256
	}
	return differ(n.ETag, other.ETag) || n.ETag == "" && other.ETag == "" && differ(n.Modified, other.Modified)
}

// differ says whether two statements contradict each other: one that was not made contradicts nothing.
func differ(a, b string) bool { return a != "" && b != "" && a != b }

// acceptEnd looks whether there is nothing after what we have because we have all.
func (d *download) acceptEnd(resp *http.Response, facts told) (int64, error) {
	size := facts.size
	if _, _, stated, ok := contentRange(resp.Header.Get("Content-Range")); ok && stated >= 0 {
		size = stated
	}
	n, now := &d.part.note, note{Size: size, SHA256: facts.sha256, ETag: resp.Header.Get("ETag")}
	if size >= 0 && size == d.part.have && !n.contradicts(now) {
		known := *n
		if known.Size = size; known.SHA256 == "" {
			known.SHA256 = facts.sha256
		}
		return 0, d.part.keep(known)
	}
	d.whole = true
	return 0, again("the server has nothing from byte %d on, and the file has %d bytes", d.part.have, size)
}

// contentRange reads "bytes FROM-TO/SIZE", also with * for the range or the size, which is -1 then.
func contentRange(text string) (from, to, size int64, ok bool) {
	text, ok = strings.CutPrefix(text, "bytes ")
	span, whole, cut := strings.Cut(text, "/")
	if !ok || !cut {
		return 0, 0, 0, false
	}
	size = -1
	if whole != "*" {
		n, err := strconv.ParseUint(whole, 10, 63)
		if err != nil {
			return 0, 0, 0, false
		}
		size = int64(n)
	}
	if span == "*" {
		return 0, -1, size, true
	}
	first, last, _ := strings.Cut(span, "-")
	a, err1 := strconv.ParseUint(first, 10, 62)
	b, err2 := strconv.ParseUint(last, 10, 62)
	if err1 != nil || err2 != nil || b < a || size >= 0 && int64(b) >= size {
		return 0, 0, 0, false
	}
	return int64(a), int64(b), size, true
}

// take writes what comes to the part. length is how many bytes are due, -1 when the body's own end tells.
func (d *download) take(ctx context.Context, resp *http.Response, length int64, watchdog *time.Timer) error {
	buf := make([]byte, 256<<10)
	for left := length; ; {
		watchdog.Reset(d.o.Stall)
		n, err := resp.Body.Read(buf)
		if length >= 0 && int64(n) > left {
			d.whole = true
			return again("the server sends more than the %d bytes that it announced", length)
		}
		if n > 0 {
			if _, err := d.part.Write(buf[:n]); err != nil {
				return err
			}
			left -= int64(n)
			d.tell(PhaseLoading)
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF) && (length < 0 || left == 0):
			return d.missing()
		case errors.Is(context.Cause(ctx), errStalled):
			return &fault{cause: errStalled, retry: true}
		case errors.Is(err, io.EOF):
			return again("the server ended %d bytes early", left)
		default:
			return &fault{cause: fmt.Errorf("read file: %w", err), retry: true}
		}
	}
}

// missing is an error when the part is not as long as the file: a server may answer a shorter range than was asked for.
func (d *download) missing() error {
	switch size := d.part.note.Size; {
	case size < 0 || d.part.have == size:
		return nil
	case d.part.have > size:
		d.whole = true
	}
	return again("%d of %d bytes have come", d.part.have, d.part.note.Size)
}

// verify holds the whole against what is known of it. What contradicts is thrown away, and fetched once more from the
// beginning.
func (d *download) verify() error {
	d.tell(PhaseVerifying)
	want := d.part.note.SHA256
	if got := d.part.sum(); want != "" && got != want {
		d.mismatch++
		d.whole = true
		err := d.part.restart()
		if err != nil {
			return err
		}
		f := again("the file has the sha256 %s and the hub tells %s", got, want)
		f.retry = d.mismatch < 2
		return f
	}
	if strings.EqualFold(filepath.Ext(d.file.Path), ".gguf") && string(d.part.starts(4)) != "GGUF" {
		f := final("what came is no GGUF file but %s", strconv.Quote(d.mediaType))
		f.hint = "a page in its place may be that of a proxy or of a login"
		if err := d.part.restart(); err != nil {
			return err
		}
		return f
	}
	return nil
}

// tell shows how far the download is.
func (d *download) tell(phase Phase) {
	p := Progress{Path: d.file.Path, Phase: phase, Size: -1}
	if d.part != nil {
		p.Have, p.Size = d.part.have, d.part.note.Size
	}
	d.state.Store(&p)
}
