package sim

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

const (
	maxHead     = 1 << 20 // bytes of a request line and its headers
	maxReadStep = 1 << 20 // largest step in which a body buffer grows: a false length must not allocate it all
)

// errMalformed is wrapped by every error about the bytes of a request.
var errMalformed = errors.New("malformed request")

// readRequest reads one request whole. proceed is called before the body of a request that expects 100-continue. A
// plain end before the first byte is io.EOF.
func readRequest(br *bufio.Reader, maxBody int, proceed func() error) (Request, error) {
	var req Request
	if err := readHead(br, &req); err != nil {
		return req, err
	}
	length, chunked, err := bodyFraming(req.Headers)
	if err != nil {
		return req, err
	}
	if length > maxBody {
		return req, fmt.Errorf("%w: body of %d bytes is over the limit of %d", errMalformed, length, maxBody)
	}
	if v, ok := exchange.HeaderValue(req.Headers, "Expect"); ok && strings.EqualFold(v, "100-continue") && (chunked || length > 0) {
		if err := proceed(); err != nil {
			return req, err
		}
	}
	if chunked {
		req.Body, err = readChunked(br, maxBody)
	} else if length > 0 {
		req.Body, err = readExactly(br, nil, length)
	}
	return req, err
}

// readHead reads request line and headers. Empty lines before them are skipped, as servers do.
func readHead(br *bufio.Reader, req *Request) error {
	left := maxHead
	line, err := readLine(br, &left)
	for err == nil && line == "" {
		line, err = readLine(br, &left)
	}
	if err != nil {
		return err
	}
	parts := strings.Split(line, " ")
	if len(parts) != 3 || !strings.HasPrefix(parts[2], "HTTP/1.") || strings.ContainsFunc(line, unprintable) {
		return fmt.Errorf("%w: request line %q", errMalformed, line)
	}
	req.Method, req.Target, req.Proto = parts[0], parts[1], parts[2]
	for {
		line, err := readLine(br, &left)
		if err != nil {
			return unexpected(err)
		}
		if line == "" {
			return nil
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" || strings.ContainsAny(name, " \t") || strings.ContainsFunc(value, unprintable) {
			return fmt.Errorf("%w: header line %q", errMalformed, line)
		}
		req.Headers = append(req.Headers, exchange.Header{Name: name, Value: strings.Trim(value, " \t")})
	}
}

// unprintable reports whether a rune cannot stand in a line of a head: whoever reads the request behind us might take it for
// the end of the line.
func unprintable(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// bodyFraming says how the body of a request is delimited. What two readers could understand in two ways is refused.
func bodyFraming(hs []exchange.Header) (length int, chunked bool, err error) {
	stated := ""
	for _, h := range hs {
		switch {
		case strings.EqualFold(h.Name, "Transfer-Encoding"):
			if chunked || !strings.EqualFold(h.Value, "chunked") {
				return 0, false, fmt.Errorf("%w: transfer encoding %q", errMalformed, h.Value)
			}
			chunked = true
		case strings.EqualFold(h.Name, "Content-Length"):
			n, err := strconv.ParseUint(h.Value, 10, 63)
			if err != nil || stated != "" && h.Value != stated {
				return 0, false, fmt.Errorf("%w: content length %q", errMalformed, h.Value)
			}
			length, stated = int(n), h.Value
		}
	}
	if chunked && stated != "" {
		return 0, false, fmt.Errorf("%w: both a content length and a transfer encoding", errMalformed)
	}
	return length, chunked, nil
}

func readChunked(br *bufio.Reader, limit int) ([]byte, error) {
	var body []byte
	for {
		left := maxHead
		line, err := readLine(br, &left)
		if err != nil {
			return body, unexpected(err)
		}
		size, err := chunkSize(line)
		if err != nil {
			return body, err
		}
		if size == 0 {
			return body, readTrailer(br)
		}
		if size > limit-len(body) {
			return body, fmt.Errorf("%w: body is over the limit of %d bytes", errMalformed, limit)
		}
		if body, err = readExactly(br, body, size); err != nil {
			return body, err
		}
		if line, err = readLine(br, &left); err != nil || line != "" {
			return body, fmt.Errorf("%w: chunk without line end: %q", errMalformed, line)
		}
	}
}

// chunkSize reads the size in a chunk's first line; extensions are ignored.
func chunkSize(line string) (int, error) {
	digits, _, _ := strings.Cut(line, ";")
	n, err := strconv.ParseUint(strings.TrimSpace(digits), 16, 31)
	if err != nil {
		return 0, fmt.Errorf("%w: chunk size %q", errMalformed, line)
	}
	return int(n), nil
}

// readTrailer drops the trailers of a chunked body.
func readTrailer(br *bufio.Reader) error {
	left := maxHead
	for {
		line, err := readLine(br, &left)
		if err != nil {
			return unexpected(err)
		}
		if line == "" {
			return nil
		}
	}
}

// readExactly appends n bytes to buf.
func readExactly(br *bufio.Reader, buf []byte, n int) ([]byte, error) {
	for n > 0 {
		step := min(n, maxReadStep)
		start := len(buf)
		buf = append(buf, make([]byte, step)...)
		got, err := io.ReadFull(br, buf[start:])
		if err != nil {
			return buf[:start+got], unexpected(err)
		}
		n -= step
	}
	return buf, nil
}

// readLine reads a line and strips its end; left is what the head may still have.
func readLine(br *bufio.Reader, left *int) (string, error) {
	var line []byte
	for {
		part, err := br.ReadSlice('\n')
		line = append(line, part...)
		*left -= len(part)
		if *left < 0 {
			return "", fmt.Errorf("%w: head is over %d bytes", errMalformed, maxHead)
		}
		if err == nil {
			break
		}
		if err != bufio.ErrBufferFull {
			if len(line) > 0 {
				err = unexpected(err)
			}
			return "", err
		}
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	return string(bytes.TrimSuffix(line, []byte("\r"))), nil
}

// unexpected marks an end in the middle of a request.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// wantsClose reports whether a request asks for the connection to be closed after its answer.
func (r Request) wantsClose() bool {
	v, _ := exchange.HeaderValue(r.Headers, "Connection")
	if r.Proto == "HTTP/1.0" {
		return !hasToken(v, "keep-alive")
	}
	return hasToken(v, "close")
}

// hasToken reports whether a comma-separated header value holds a token.
func hasToken(value, token string) bool {
	for v := range strings.SplitSeq(value, ",") {
		if strings.EqualFold(strings.TrimSpace(v), token) {
			return true
		}
	}
	return false
}
