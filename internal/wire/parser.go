package wire

import "github.com/benchproxy/benchproxy/internal/exchange"

// Info is what a parser must know about an exchange before the first body byte.
type Info struct {
	Path            string // request path; a query is ignored
	Status          int    // HTTP status of the response
	ContentType     string // of the response, parameters and all
	ContentEncoding string // of the response; "" for none
}

// InfoOf takes the facts from a sealed exchange.
func InfoOf(x *exchange.Exchange) Info {
	ct, _ := exchange.HeaderValue(x.Response.Headers, "Content-Type")
	ce, _ := exchange.HeaderValue(x.Response.Headers, "Content-Encoding")
	return Info{Path: x.Request.Target, Status: x.Response.Status, ContentType: ct, ContentEncoding: ce}
}

// Parse reads the response body of a sealed exchange, cut as its reads were.
func Parse(x *exchange.Exchange) *Transcript {
	p := NewParser(InfoOf(x))
	return p.Finish(x.End == exchange.EndEOF && x.Response.Body.Whole())
}

// Parser reads one response body as it comes. It belongs to one goroutine.
type Parser struct {
	info Info
}

// NewParser makes the parser of one response.
func NewParser(info Info) *Parser { return &Parser{info: info} }

// Feed takes the next body bytes, which the read with the given index brought. It keeps nothing of b.
func (p *Parser) Feed(b []byte, read int) {}

// Snapshot is the transcript of what was fed so far. It costs a few allocations, whatever the length of the body, and
// stays as it is while the parser goes on.
func (p *Parser) Snapshot() *Transcript { return &Transcript{Version: Version} }

// Finish ends the body and gives its transcript; whole says that it came to its proper end and no byte is missing.
// The parser must not be fed after.
func (p *Parser) Finish(whole bool) *Transcript { return p.Snapshot() }
