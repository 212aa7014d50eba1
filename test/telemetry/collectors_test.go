package telemetry

import (
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// anyLoss is a number of lost spans that depends on the machine.
const anyLoss = -1

// badCollector is a collector that makes trouble.
type badCollector struct {
	handler http.HandlerFunc // nil: nobody is there
	lost    func(spans int) int
}

// rejecting takes all but one span of each request, by ExportTraceServiceResponse{partial_success{rejected_spans: 1}}.
func rejecting(requests *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // of one that was cut there is nothing to say
		requests.Add(1)
		_, _ = w.Write([]byte{10, 2, 8, 1})
	}
}

func badCollectors(requests *atomic.Int64) map[string]badCollector {
	all := func(spans int) int { return spans }
	answer := func(status int, body []byte, headers ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			for i := 0; i < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			w.WriteHeader(status)
			_, _ = w.Write(body)
		}
	}
	return map[string]badCollector{
		"not there": {nil, all},
		"silent": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // else the server does not see that the client left
			<-r.Context().Done()
		}, all},
		"slow": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			time.Sleep(2 * time.Second)
		}, func(int) int { return anyLoss }},
		"busy":     {answer(503, nil, "Retry-After", "1"), all},
		"refusing": {answer(400, []byte("\x08\x03\x12\x06no way")), all},
		"partial":  {rejecting(requests), func(int) int { return int(requests.Load()) }},
		"cut": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, 100))
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte("half"))
			panic(http.ErrAbortHandler)
		}, all},
		"huge": {answer(200, make([]byte, 32<<20)), all},
	}
}

// TestBadCollectors holds that a collector that is not there, or makes any kind of trouble, changes no stream and loses
// nothing but spans, which are counted and told once; and that no end waits for it. The same requests go by turns through a
// proxy that traces and one that does not.
func TestBadCollectors(t *testing.T) {
	var requests atomic.Int64
	for name, bad := range badCollectors(&requests) {
		signal := map[bool]os.Signal{true: syscall.SIGTERM, false: syscall.SIGINT}[len(name)%2 == 0]
		t.Run(name, func(t *testing.T) {
			endpoint := fmt.Sprintf("http://127.0.0.1:%d", freePort(t))
			if bad.handler != nil {
				ln, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				server := &httptest.Server{Listener: ln, Config: &http.Server{Handler: bad.handler}}
				server.Start()
				defer server.Close()
				endpoint = server.URL
			}
			sim := startSim(t, "--set", engine)
			traced := record(t, sim, "OTEL_EXPORTER_OTLP_ENDPOINT="+endpoint, "OTEL_BSP_SCHEDULE_DELAY=50", "OTEL_BSP_MAX_QUEUE_SIZE=64")
			plain := record(t, sim)
			const n = 30
			for range n {
				_, a := ask(t, "POST", traced.base+"/v1/chat/completions", streamed)
				_, b := ask(t, "POST", plain.base+"/v1/chat/completions", streamed)
				if strip(a) != strip(b) {
					t.Fatalf("the streams differ:\n%s\n%s", a, b)
				}
			}
			began := time.Now()
			traced.stop(signal)
			if took := time.Since(began); took > 15*time.Second { // five of them are the last flush
				t.Errorf("the end took %s", took)
			}
			plain.stop(os.Interrupt)
			with, without := shown(t, traced.store, "r"), shown(t, plain.store, "r")
			if len(with) != n || len(without) != n {
				t.Errorf("%d and %d of %d are stored", len(with), len(without), n)
			}
			if a, b := median(with, "ttft_ms"), median(without, "ttft_ms"); a > b+5 {
				t.Errorf("the median TTFT is %.3f ms with this collector, %.3f ms without", a, b)
			} else {
				t.Logf("median TTFT %.3f ms with, %.3f ms without; added per event %.1f us with, %.1f us without", a, b, median(with, "added_p50_us"), median(without, "added_p50_us"))
			}
			checkLoss(t, traced.stderr(), bad.lost(2*n))
		})
	}
}

// checkLoss holds what is told of lost spans.
func checkLoss(t *testing.T, text string, lost int) {
	t.Helper()
	if lost == anyLoss {
		return
	}
	want := strconv.Itoa(lost) + " spans could not be sent"
	if lost == 1 {
		want = "1 span could not be sent"
	}
	if !strings.Contains(text, want) || strings.Count(text, "traces: ") != 1 || lost == 0 {
		t.Errorf("want %q; told was %s", want, text)
	}
}

// strip takes out what differs between two answers of the scripted engine: ids and times.
func strip(s string) string {
	return regexp.MustCompile(`"id":"[^"]*"|"created":\d+`).ReplaceAllString(s, "")
}

func median(list []exchange, metric string) float64 {
	var all []float64
	for _, x := range list {
		if v := x.Metrics[metric]; v != nil {
			all = append(all, *v)
		}
	}
	slices.Sort(all)
	if len(all) == 0 {
		return math.NaN()
	}
	return all[len(all)/2]
}
