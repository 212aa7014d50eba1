package exchange

// Header is one header line as it was received: name in its own case, value without the line end.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Request is what the client sent. Credentials are masked in Target, Head and Headers.
type Request struct {
	Method  string   // as sent
	Target  string   // request target as sent: path and query bytes untouched
	Proto   string   // "HTTP/1.1"
	Head    []byte   // request line and header block, raw
	Headers []Header // in order, repeats kept
	Body    Body     // as sent: content coding untouched
}

// Response is what the engine sent.
type Response struct {
	Status        int      // 0 when no response head came
	Reason        string   // reason phrase as sent
	Proto         string   // "HTTP/1.1"
	Head          []byte   // status line and header block of the final response, raw
	Headers       []Header // in order, repeats kept
	Trailers      []Header // of a chunked body
	Informational []int    // 1xx status codes seen before the final response
	Body          Body     // after de-chunking, content coding untouched
}

// Intervention is one thing the proxy added, dropped or changed between the two sides, so that "passes bytes through
// untouched" can be checked against the record.
type Intervention struct {
	Kind   string `json:"kind"`           // header_added, header_removed, header_changed, body_changed, body_reframed, response_removed ...
	Where  Side   `json:"where"`          // the side that received the changed form: engine or client
	Name   string `json:"name"`           // header or field
	From   string `json:"from,omitempty"` // old value, credentials masked
	To     string `json:"to,omitempty"`   // new value, credentials masked
	Reason string `json:"reason"`         // hop_by_hop, host, identity_coding, credential, usage_requested ...

	// Where in the body, as its sender sent it, for body_changed and response_removed.
	Offset int64 `json:"offset,omitempty"` // first byte
	Length int64 `json:"length,omitempty"` // bytes removed there
}

// Origin names what a replayed exchange repeats.
type Origin struct {
	Exchange   ID     `json:"exchange"`   // the recorded exchange
	Key        string `json:"key"`        // its request key
	Occurrence int    `json:"occurrence"` // which take under that key, from 0
}

// Tunnel counts the bytes of an upgraded connection, which is passed through as one opaque exchange.
type Tunnel struct {
	ToEngine int64 `json:"to_engine"` // bytes after the upgrade, client to engine
	ToClient int64 `json:"to_client"` // bytes after the upgrade, engine to client
}

// Identity says which engine an exchange was made with, and how that is known.
type Identity struct {
	Engine  string `json:"engine,omitempty"`  // profile id: llamacpp, vllm ...; unknown when it was asked in vain, "" when it was not asked
	Version string `json:"version,omitempty"` // build, as the engine states it
	Basis   string `json:"basis,omitempty"`   // label (the user said so), probe (asked before the run), header (from a response)
}

// Exchange is one request and its answer as they crossed the proxy. It is sealed once and never changed after.
type Exchange struct {
	ID            ID
	Run           ID     // "" outside a run
	Seq           uint64 // order of acceptance within the run, from 1
	Cell          string // benchmark cell, "" outside the matrix
	Wave          string // set of requests that were sent together, "" when none
	Upstream      string // name of the listener's upstream
	UpstreamURL   string // origin and path prefix requests were sent to, credentials masked
	Mode          string // record, proxy, replay, bench, gate
	Dialect       string // what the user pinned the dialect of every answer to; "" = by path
	Identity      Identity
	Request       Request
	Response      Response
	Timeline      Timeline
	End           End
	Cause         *Cause // nil for EndEOF
	State         State
	Origin        *Origin
	Item          *PlanItem // nil outside a plan
	Counters      *Counters // of the engine around it; nil when they were not read
	Tunnel        *Tunnel
	Interventions []Intervention
	Harness       string // version of benchproxy that made it
	Masked        bool   // redact.Exchange has masked its credentials, and nothing was changed since
}

// HeaderValue is the first value of the named header, compared without case; ok is false when there is none.
func HeaderValue(hs []Header, name string) (value string, ok bool) {
	for _, h := range hs {
		if equalFold(h.Name, name) {
			return h.Value, true
		}
	}
	return "", false
}

// equalFold compares header names: ASCII only, so that no Unicode folding can make two names one.
func equalFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		x, y := a[i], b[i]
		if 'A' <= x && x <= 'Z' {
			x += 'a' - 'A'
		}
		if 'A' <= y && y <= 'Z' {
			y += 'a' - 'A'
		}
		if x != y {
			return false
		}
	}
	return true
}
