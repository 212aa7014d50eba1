package wire

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// TestFieldReports holds what reports on recording ask of a reader of streams; the bytes themselves are held end to end.
func TestFieldReports(t *testing.T) {
	t.Run("RR-03 an error inside the stream stands where it was", func(t *testing.T) {
		body := stream(delta(`{"content":"a"}`), delta(`{"content":"b"}`), delta(`{"content":"c"}`), `{"error":{"message":"m"}}`)
		tr := say(body)
		if tr.Error == nil || tr.Error.Where != whereEvent || len(tr.Events) != 4 || tr.Events[3].Kinds != 0 || tr.DialectEnd {
			t.Errorf("%+v", tr)
		}
	})
	t.Run("RR-04 comments, names, ids, data in two lines, CRLF and a split character", func(t *testing.T) {
		body := ": keep-alive\r\n\r\nevent: message\r\nid: 7\r\ndata: {\"choices\":[{\"index\":0,\r\ndata: \"delta\":{\"content\":\"é\"}}]}\r\n\r\n" + stream(finishChunk)
		whole := say(body)
		at := bytes.IndexByte([]byte(body), 0xc3) + 1
		p := NewParser(Info{Path: "/v1/chat/completions", ContentType: "text/event-stream"})
		p.Feed([]byte(body[:at]), 0)
		p.Feed([]byte(body[at:]), 1)
		cut := p.Finish(true)
		if d := cmp.Diff(withoutReads(whole), withoutReads(cut)); d != "" || cut.Choice0().Text != "é" || cut.Comments != 1 || cut.ParseErrors != 0 || cut.Events[0].Read != 1 {
			t.Errorf("%+v (-whole +cut):\n%s", cut, d)
		}
	})
	t.Run("RR-27 events of a coded body have the stamps of their reads", func(t *testing.T) {
		coded := encode(t, "gzip", []byte(stream(delta(`{"content":"a"}`), finishChunk, "[DONE]")))
		x := exchangeOf(exchange.NewBody(coded), len(coded)/2, len(coded)-len(coded)/2)
		x.Response.Headers = append(x.Response.Headers, exchange.Header{Name: "Content-Encoding", Value: "gzip"})
		tr := Parse(x)
		inOrder := slices.IsSortedFunc(tr.Events, func(a, b Event) int { return a.Read - b.Read })
		if tr.Coding != "gzip" || tr.Choice0().Text != "a" || !tr.DialectEnd || !inOrder || len(tr.Events) != 3 {
			t.Errorf("%+v", tr)
		}
	})
}
