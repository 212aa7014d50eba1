package canon

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
)

var errMultipart = errors.New("multipart body does not match its boundary")

// splitMultipart gives the media type and the length-prefixed pieces of a multipart body: preamble, each part with its
// headers as sent, epilogue. The boundary, which clients draw at random, is in neither.
func splitMultipart(contentType string, body []byte) (media string, pieces []byte, err error) {
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return "", nil, fmt.Errorf("read content type: %w", err)
	}
	delimiter := []byte("\r\n--" + params["boundary"])
	if len(params["boundary"]) == 0 {
		return "", nil, errMultipart
	}
	// A body begins at a line start: the line end in front makes the first delimiter like the others.
	rest := append([]byte("\r\n"), body...)
	for n := 0; ; n++ {
		piece, after, last, ok := nextPiece(rest, delimiter)
		if !ok {
			return "", nil, errMultipart
		}
		pieces = appendPart(pieces, piece)
		if last {
			if n == 0 {
				return "", nil, errMultipart
			}
			return media, appendPart(pieces, after), nil
		}
		rest = after
	}
}

// nextPiece cuts rest at its first delimiter line; last says that it was the closing one.
func nextPiece(rest, delimiter []byte) (piece, after []byte, last, ok bool) {
	for from := 0; ; {
		i := bytes.Index(rest[from:], delimiter)
		if i < 0 {
			return nil, nil, false, false
		}
		i += from
		tail := rest[i+len(delimiter):]
		if bytes.HasPrefix(tail, []byte("--")) {
			return rest[:i], tail[2:], true, true
		}
		trimmed := bytes.TrimLeft(tail, " \t")
		if bytes.HasPrefix(trimmed, []byte("\r\n")) {
			// The line end stays: it may be the start of the next delimiter.
			return rest[:i], trimmed, false, true
		}
		from = i + len(delimiter) // the boundary is a prefix of other text
	}
}
