package exchange

import "testing"

func TestSentRequest(t *testing.T) {
	change := Intervention{Kind: KindBodyChanged, Where: SideEngine, Name: "f", To: `,"f":1`, Offset: 6}
	cases := map[string]struct {
		body Body
		list []Intervention
		want string // "" for none
	}{
		"nothing changed":      {NewBody([]byte(`{"a":0}`)), []Intervention{{Kind: "header_added"}}, ""},
		"inserted":             {NewBody([]byte(`{"a":0}`)), []Intervention{change}, `{"a":0,"f":1}`},
		"replaced":             {NewBody([]byte(`{"a":0}`)), []Intervention{{Kind: KindBodyChanged, From: "0", To: "17", Offset: 5, Length: 1}}, `{"a":17}`},
		"two, one after other": {NewBody([]byte(`{"a":0}`)), []Intervention{change, change}, `{"a":0,"f":1,"f":1}`},
		"behind the end":       {NewBody([]byte(`{}`)), []Intervention{change}, ""},
		"too long":             {NewBody([]byte(`{}`)), []Intervention{{Kind: KindBodyChanged, Offset: 1, Length: 2}}, ""},
		"negative":             {NewBody([]byte(`{}`)), []Intervention{{Kind: KindBodyChanged, Offset: -1}}, ""},
		"negative length":      {NewBody([]byte(`{}`)), []Intervention{{Kind: KindBodyChanged, Length: -1}}, ""},
		"body cut":             {Body{Size: 9, Kept: 7, Chunks: [][]byte{[]byte(`{"a":0}`)}}, []Intervention{change}, ""},
	}
	for name, c := range cases {
		x := &Exchange{Request: Request{Target: "/t", Body: c.body}, Interventions: c.list}
		sent, ok := SentRequest(x)
		if ok != (c.want != "") {
			t.Errorf("%s: ok is %v", name, ok)
			continue
		}
		if got := string(sent.Body.Bytes()); ok && (got != c.want || sent.Target != "/t") {
			t.Errorf("%s: got %s %s", name, sent.Target, got)
		}
		if before := string(x.Request.Body.Bytes()); before != `{"a":0}` && before != `{}` {
			t.Errorf("%s: the client's body became %s", name, before)
		}
	}
}
