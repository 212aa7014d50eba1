package web

import (
	"net/http"
	"strings"
	"testing"
)

// TestCompareAsksForWhatIsMissing holds that the page of two takes asks for the ids it was not given, takes them as people
// paste them, and shows none unescaped.
func TestCompareAsksForWhatIsMissing(t *testing.T) {
	store, _, rows := recorded(t, asked{model: "m", prompt: "p", pieces: []string{"a"}}, asked{model: "m", prompt: "p", pieces: []string{"b"}})
	addr := serve(t, Options{Store: store, Health: func() any { return Health{Status: "ok"} }})
	a, b := string(rows[0].ID), string(rows[1].ID)
	for query, want := range map[string]string{
		"":                                     `placeholder="id of an exchange"`,
		"?a=" + a:                              `name="a" value="` + a + `"`,
		"?b=" + b:                              `name="b" value="` + b + `"`,
		"?a=%22%3E%3Cscript%3Ex":               `value="&#34;&gt;&lt;script&gt;x"`,
		"?a=+" + a + "%0A&b=" + b:              "",
		"?a=" + strings.ToLower(a) + "&b=" + b: "",
	} {
		status, body := get(t, addr, "/compare"+query, "")
		whole := strings.Contains(query, "&b=")
		if status != http.StatusOK || !whole && !strings.Contains(body, want) || strings.Contains(body, "<section") != whole {
			t.Errorf("%q: status %d\n%s", query, status, body)
		}
	}
	for _, query := range []string{"?a=x&b=" + b, "?a=" + a + "&b=%00"} {
		if status, _ := get(t, addr, "/compare"+query, ""); status != http.StatusBadRequest {
			t.Errorf("%q: status %d", query, status)
		}
	}
}
