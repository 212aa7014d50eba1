package recorder

import (
	"testing"

	"github.com/benchproxy/benchproxy/internal/canon"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// TestSentKey holds that a changed request keeps the key of what its client sent, and has that of what the engine got
// beside it.
func TestSentKey(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	as, asSent := streamed(`{"a":1}`, "x"), streamed(`{"a":1,"b":2}`, "x")
	as.Interventions = []exchange.Intervention{
		{Kind: exchange.KindBodyChanged, Where: exchange.SideEngine, Name: "b", To: `,"b":2`, Offset: 6, Reason: "usage_requested"},
		{Kind: "response_removed", Where: exchange.SideClient, Name: "usage", Offset: 3, Length: 4},
	}
	plain := streamed(`{"a":1}`, "x")
	run := recordAll(t, s, "sent", as, asSent, plain)
	rows := summaries(t, s, run.ID)
	if len(rows) != 3 {
		t.Fatalf("%d rows", len(rows))
	}
	wantKey, wantSent := canon.RequestKey(&as.Request).Key, canon.RequestKey(&asSent.Request).Key
	for _, row := range rows {
		key, sent := wantKey, ""
		switch row.ID {
		case as.ID:
			sent = wantSent
		case asSent.ID:
			key = wantSent
		}
		if row.Key != key || row.SentKey != sent {
			t.Errorf("%s has keys %q and %q, want %q and %q", row.ID, row.Key, row.SentKey, key, sent)
		}
	}
	x, _, err := s.Exchange(as.ID)
	if err != nil {
		t.Fatal(err)
	}
	sent, ok := exchange.SentRequest(x)
	if got := string(sent.Body.Bytes()); !ok || got != `{"a":1,"b":2}` || string(x.Request.Body.Bytes()) != `{"a":1}` {
		t.Errorf("the stored record gives %q as sent, %v", got, ok)
	}
}
