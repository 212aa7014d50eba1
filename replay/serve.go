package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benchproxy/benchproxy/internal/canon"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/redact"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// ServeOptions say how a stand-in answers. The zero value answers at once, and every request that was recorded.
type ServeOptions struct {
	Speed  float64     // of the recorded pace: 1 is as recorded, 2 twice as fast; 0 is at once
	Strict bool        // a recorded answer is given once; then the request is a miss
	Relax  []RelaxRule // what two requests may differ in; only tried where nothing is recorded for the exact one
	// Forward reaches a server that gets the misses. Nil refuses them: then there is nothing by which any request could
	// leave this program.
	Forward  func(ctx context.Context) (net.Conn, error)
	OnMiss   func(Miss)  // is told of each miss, from many goroutines; nil = nobody
	OnAnswer func(Given) // is told of each recorded answer when it has ended, from many goroutines; nil = nobody
}

// Validate holds that the options make sense. The error wraps exchange.ErrUsage.
func (o *ServeOptions) Validate() error {
	if !(o.Speed >= 0 && o.Speed <= 1e6) { // NaN is neither
		return fmt.Errorf("%w: speed %v is not a number from 0 to a million", exchange.ErrUsage, o.Speed)
	}
	return nil
}

// StandIn answers requests from recorded exchanges, as the engine did that was recorded. It is safe for concurrent use.
type StandIn struct {
	o     ServeOptions
	index *index

	requests, answered, relaxed, repeated, probes, misses, forwarded, failed, cut atomic.Int64

	explain sync.Mutex // one miss is explained at a time: it reads many records

	mu   sync.Mutex // holds the following
	lost error      // why the first record that could not be read could not
	late *stat.Histogram
	most time.Duration // the longest lateness
}

// NewStandIn reads the index of what f picks of a recorded run. Bodies stay in src, which must stay open, and are read
// when they are asked for; with relax rules each is read once now. The error wraps exchange.ErrMiss when the run has no
// answer that can be given.
func NewStandIn(ctx context.Context, src Source, run *exchange.Run, f Filter, o ServeOptions) (*StandIn, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s := &StandIn{o: o, index: newIndex(o.Relax), late: stat.NewHistogram()}
	p, err := pick(ctx, src, run, f)
	if err != nil {
		return nil, err
	}
	for row, err := range src.Summaries(run.ID) {
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err == nil && p.filter.Match(&row) {
			err = s.index.add(src, &row, false)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(s.index.takes) == 0 {
		return nil, &exchange.Error{Op: "serve", Object: cmp.Or(run.Name, string(run.ID)), Side: exchange.SideClient,
			Cause: fmt.Errorf("%w: it has no answer that can be given%s", exchange.ErrMiss, s.index.excuses()), Hint: "name a run, or a file, that was recorded with its answers"}
	}
	return s, nil
}

// Add makes an exchange that was recorded meanwhile, of any run of src, an answer too. It was given once, when it was
// recorded: a Strict stand-in does not give it again. What did not come to a complete answer is none: a refusal for load, or
// an engine that went away, is nothing to repeat to a client that tries again.
func (s *StandIn) Add(src Source, row *exchange.Summary) error {
	if row.Outcome != exchange.OutcomeComplete {
		return nil
	}
	return s.index.add(src, row, true)
}

// Config is that of a server which answers with s and does nothing else.
func (s *StandIn) Config() sim.Config {
	return sim.Config{Handler: s.Answer, Bare: true, KeepRecords: 64, KeepBytes: 1}
}

// Answer is the script that answers a request. It never is nil.
func (s *StandIn) Answer(req sim.Request) *sim.Script {
	s.requests.Add(1)
	a := ask(req)
	found := s.index.find(a, s.o.Strict)
	if found.take == nil && found.why == MissNotRecorded && req.Method == "HEAD" {
		get := req // its answer tells the head too
		get.Method = "GET"
		if as := ask(get); s.index.holds(as) {
			a, found = as, s.index.find(as, s.o.Strict)
		}
	}
	if found.take == nil {
		return s.unmatched(req, a, found.why)
	}
	return s.give(req, a, found)
}

// give answers with a record.
func (s *StandIn) give(req sim.Request, a *inquiry, found match) *sim.Script {
	x, row, err := found.take.src.Exchange(found.take.id)
	if errors.Is(err, exchange.ErrMiss) {
		return s.unmatched(req, a, MissRemoved)
	}
	if err != nil {
		return s.broken(req, a, fmt.Errorf("read recorded answer: %w", err))
	}
	if !found.confirms(x, a, s.o.Relax) {
		return s.miss(req, a, MissCollision)
	}
	script, err := answerScript(x, outcomeOf(x, &row), answerForm{sent: found.form == formSent, speed: s.o.Speed, request: req})
	if err != nil {
		return s.broken(req, a, err)
	}
	s.answered.Add(1)
	if found.relaxed {
		s.relaxed.Add(1)
	}
	if found.again {
		s.repeated.Add(1)
	}
	script.Done = func(r sim.Record) {
		s.ended(r)
		s.given(x, a, found, r)
	}
	return script
}

// outcomeOf is what an exchange came to, where its end does not say it: by its row, or derived where the row does not know.
func outcomeOf(x *exchange.Exchange, row *exchange.Summary) exchange.Outcome {
	if row.Outcome == "" && x.End != exchange.EndEOF {
		return measure.Analyze(x).Outcome
	}
	return row.Outcome
}

// inquiry is a request as it is looked up.
type inquiry struct {
	request exchange.Request // secrets masked
	key     canon.Key
	where   string // method and path
}

func ask(req sim.Request) *inquiry {
	r := exchange.Request{Method: req.Method, Target: redact.Target(req.Target), Proto: req.Proto, Headers: req.Headers, Body: exchange.NewBody(req.Body)}
	return &inquiry{request: r, key: canon.RequestKey(&r), where: whereOf(r.Method, r.Target)}
}

// unmatched answers a request that no record answers.
func (s *StandIn) unmatched(req sim.Request, a *inquiry, why MissReason) *sim.Script {
	if s.o.Forward != nil {
		s.forwarded.Add(1)
		return &sim.Script{Relay: func(ctx context.Context, w io.Writer) sim.Ending { return s.forward(ctx, req, w) }}
	}
	if why == MissNotRecorded {
		if script := s.probe(req); script != nil {
			s.probes.Add(1)
			return script
		}
	}
	return s.miss(req, a, why)
}

// broken answers where a record cannot be given for a fault of ours, and counts it.
func (s *StandIn) broken(req sim.Request, a *inquiry, err error) *sim.Script {
	s.failed.Add(1)
	s.mu.Lock()
	s.lost = cmp.Or(s.lost, err)
	s.mu.Unlock()
	s.tell(Miss{Key: a.key.Key, Method: req.Method, Target: a.request.Target, Why: MissBroken, Cause: err.Error(), Trace: traceOf(req.Headers)})
	return sim.ErrorScript(req, 500, "server_error", err.Error())
}

func (s *StandIn) tell(m Miss) {
	if s.o.OnMiss != nil {
		s.o.OnMiss(m)
	}
}

// ended counts how late the writes of a recorded answer were.
func (s *StandIn) ended(r sim.Record) {
	if r.Ended != sim.EndedSent {
		s.cut.Add(1)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range r.Writes {
		late := time.Duration(max(w.At-w.Plan, 0))
		s.late.Add(float64(late))
		s.most = max(s.most, late)
	}
}

// ServeReport is what a stand-in did so far.
type ServeReport struct {
	Recorded  int             `json:"recorded"`  // answers that can be given
	Unserved  int             `json:"unserved"`  // of them never given
	LeftOut   map[string]int  `json:"left_out"`  // records that cannot be given, by reason
	Requests  int64           `json:"requests"`  // all that came
	Answered  int64           `json:"answered"`  // from the recording
	Relaxed   int64           `json:"relaxed"`   // of them under a relax rule
	Repeated  int64           `json:"repeated"`  // of them with an answer that had been given before
	Cut       int64           `json:"cut"`       // of them not to their end: the client left, or the server was closed
	Probes    int64           `json:"probes"`    // questions what this server is, answered from what the recording names
	Forwarded int64           `json:"forwarded"` // not recorded and passed on
	Misses    int64           `json:"misses"`    // not recorded and refused
	Failed    int64           `json:"failed"`    // recorded, but the record could not be read
	Speed     float64         `json:"speed"`     // of the recorded pace; 0 is at once
	LateMS    exchange.Spread `json:"late_ms"`   // of all writes of recorded answers: from the instant the recording gives them to the write
	Strict    bool            `json:"strict"`
	Relax     []string        `json:"relax"`

	Lost error `json:"-"` // why the first of Failed could not
}

// Report says what was done so far.
func (s *StandIn) Report() ServeReport {
	r := ServeReport{
		Requests: s.requests.Load(), Answered: s.answered.Load(), Relaxed: s.relaxed.Load(), Repeated: s.repeated.Load(), Cut: s.cut.Load(),
		Probes: s.probes.Load(), Forwarded: s.forwarded.Load(), Misses: s.misses.Load(), Failed: s.failed.Load(),
		Speed: s.o.Speed, Strict: s.o.Strict, Relax: []string{},
	}
	for _, rule := range s.o.Relax {
		r.Relax = append(r.Relax, rule.String())
	}
	r.Recorded, r.Unserved, r.LeftOut = s.index.counts()
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Lost = s.lost
	// Every write was counted, so that no quantile is an estimate from a sample.
	if r.LateMS.N = int(s.late.N()); r.LateMS.N > 0 {
		p50, p99, most := s.late.Census(0.5)/1e6, s.late.Census(0.99)/1e6, float64(s.most)/1e6
		r.LateMS.P50, r.LateMS.P99, r.LateMS.Max = &p50, &p99, &most
	}
	return r
}

// Err is what speaks against what the stand-in did: it wraps what kept a record from being read, or else exchange.ErrMiss after
// a miss, and is nil when every request was answered.
func (r *ServeReport) Err() error {
	switch {
	case r.Failed > 0:
		return fmt.Errorf("%s could not be read: %w", count(int(r.Failed), "recorded answer", "recorded answers"), r.Lost)
	case r.Misses > 0:
		return fmt.Errorf("%w: %s not in the recording", exchange.ErrMiss, count(int(r.Misses), "request was", "requests were"))
	}
	return nil
}
