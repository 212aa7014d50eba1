package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestMetricsRoute holds that metrics are told where there are some, and to nobody without the key.
func TestMetricsRoute(t *testing.T) {
	o := Options{Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "up 1") })}
	if status, body := get(t, serve(t, o), "/metrics", ""); status != 200 || body != "up 1" {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := get(t, serve(t, o), "/metrics", "evil.example"); status != 403 {
		t.Errorf("a foreign host gets %d", status)
	}
	o.Key = "s3cret"
	if status, body := get(t, serve(t, o), "/metrics", ""); status != 401 || strings.Contains(body, "up") {
		t.Errorf("without the key: %d %s", status, body)
	}
	if status, body := get(t, serve(t, Options{}), "/metrics", ""); status != 404 || !strings.Contains(body, "no metrics") {
		t.Errorf("without metrics: %d %s", status, body)
	}
}
