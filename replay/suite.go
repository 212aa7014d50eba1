package replay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/proxy"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

// Spelling is how an engine spells what the requests of scenarios leave open. Each is an object that is merged into the
// body; nil where nothing is known, and then the body says nothing of it.
type Spelling struct {
	ThinkingOn, ThinkingOff json.RawMessage
	Timings                 json.RawMessage // asks for the engine's own timings, with streams
	NoCache                 json.RawMessage // computes the whole prompt, of requests that are to be
}

// SuiteOptions say which cases are sent, and how.
type SuiteOptions struct {
	Members  []scenario.Member // members of one wave stand together
	Options  scenario.Options  // of every case; the tag is that of the member
	Spelling Spelling
	Changes  Changes // of the one target: how it is spoken to, and what every request carries
	Session  string  // header that carries one value a conversation; "" = none
	Salt     string  // of these values, another one for each run
	Warmup   int     // requests before the first wave; they are in no case
	WarmLike bool    // they are the first request of the first case, under a nonce of their own, instead of one word
	Cell     string  // benchmark cell that the exchanges name; "" = none
	Tally    *Tally  // that counts with other suites of the run; nil is one of its own
	Prefix   string  // with which the ids of cases, items and waves begin, where a run holds several suites
	Untagged bool    // prompts do not begin with the tag of their case: they are held against those of another engine
	Unjudged bool    // cases are not judged when their wave has ended: more than its answers is needed for it
	// Lacking is what the model is known to lack, from suites before; nil is nothing.
	Lacking *Lacking
	// Case gets each case of a wave when it has ended and is judged, one at a time, while others may still run; nil for
	// nobody. A case that was cut is not among them. Its error ends the suite behind the wave.
	Case func(*SuiteCase) error
	// Wave gets the cases of each wave when all have ended and are judged. Its error ends the suite.
	Wave func(*SuiteWave) error
}

// Suite sends the cases of built-in scenarios to one target: those of a wave together, waves one after the other. Later
// turns are made of the answers to earlier ones. Nothing is sent again, but for a request that the engine wants spelled
// otherwise (see lessons) or later (see retryAfter).
type Suite struct {
	o       SuiteOptions
	waves   [][]*SuiteCase
	planned exchange.Replay
	tally   *Tally
	lessons *lessons

	mu           sync.Mutex
	found, lost  int // exchanges that reached the engine, and those that found none
	sent, judged int // exchanges sent and cases judged
	warmed       []exchange.ID
	kept         []exchange.PlannedCase
}

// SuiteWave is a wave that has ended.
type SuiteWave struct {
	Name  string
	Cases []*SuiteCase
	Wall  time.Duration // from the first byte of the first request to the end of the last answer; 0 when nothing was answered
}

// SuiteCase is one case and what became of it.
type SuiteCase struct {
	scenario.Member
	exchange.Case
	Digest  string             // hex, of the question: see scenario.Digest
	Asked   []scenario.Request // the turns that were sent, as they were meant before the engine's spelling
	Stopped error              // why the conversation did not go on to its last turn; nil when it did
	Judgment
	refused *lackTold // for which it was not sent; nil when it was
	judged  bool
	at      int // its place among the cases that the run keeps
}

// NewSuite plans a suite. Nothing is sent; the error is that of a request that cannot be made.
func NewSuite(o SuiteOptions) (*Suite, error) {
	s := &Suite{o: o, lessons: newLessons(o.Changes.Lossy), tally: o.Tally}
	if s.o.Lacking == nil {
		s.o.Lacking = &Lacking{}
	}
	if s.tally == nil {
		s.tally = NewSuiteTally()
	}
	plan := sha256.New()
	w := newHasher()
	for _, m := range o.Members {
		c, err := s.plan(m)
		if err != nil {
			return nil, fmt.Errorf("plan case %s: %w", m.Tag(), err)
		}
		item := c.item(c.Asked[0])
		item.identify(item.Body)
		w.add(item)
		if n := len(s.waves); n == 0 || s.waves[n-1][0].Wave() != m.Wave() {
			s.waves = append(s.waves, nil)
		}
		last := len(s.waves) - 1
		s.waves[last] = append(s.waves[last], c)
		fmt.Fprintf(plan, "%s %s %s\n", m.Tag(), m.Wave(), item.Key)
		c.Asked, c.at = nil, len(s.kept)
		s.kept = append(s.kept, exchange.PlannedCase{Case: c.Case})
	}
	s.planned = exchange.Replay{Workload: w.sum(), Source: "built-in scenarios", Driver: string(LoopWaves)}
	fmt.Fprintf(plan, "%s %q %q %q %d\n", s.planned.Workload, o.Changes.Model, o.Changes.Headers, o.Spelling, o.Warmup)
	s.planned.Plan = PlanScheme + hex.EncodeToString(plan.Sum(nil)[:16])
	s.planned.Items.Planned, s.planned.Items.Unsent = len(o.Members), len(o.Members)
	s.tally.expect(s)
	return s, nil
}

// NewSuiteTally counts what becomes of the suites of one run, which have different prefixes.
func NewSuiteTally() *Tally {
	return &Tally{items: map[itemName]*itemState{}, sizes: map[string]int{}, waves: map[string]*waveState{}}
}

// expect takes the cases of a suite into what is planned.
func (t *Tally) expect(s *Suite) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.planned += len(s.o.Members)
	for _, m := range s.o.Members {
		for turn := range m.Turns {
			t.sizes[s.waveOf(m, turn)]++
		}
	}
}

// plan makes a case with its first request.
func (s *Suite) plan(m scenario.Member) (*SuiteCase, error) {
	o := s.options(m)
	digest, err := m.Digest(o)
	if err != nil {
		return nil, err
	}
	c := &SuiteCase{Member: m, Case: m.Case(s.inRun(m.Tag()), o), Digest: digest}
	c.Case.Concurrency, c.Case.Repeat = m.Concurrency, m.Repeat
	first, err := m.Request(o, nil)
	if err != nil {
		return nil, err
	}
	c.Asked = []scenario.Request{first}
	return c, nil
}

func (s *Suite) options(m scenario.Member) scenario.Options {
	o := s.o.Options
	if !s.o.Untagged {
		o.Tag = m.Tag()
	}
	return o
}

// waveOf names the requests that are sent together.
func (s *Suite) waveOf(m scenario.Member, turn int) string {
	if m.Turns > 1 && !m.Together {
		return s.inRun(m.Wave() + "/" + strconv.Itoa(turn+1))
	}
	return s.inRun(m.Wave())
}

// inRun is a name within the run, which may hold several suites.
func (s *Suite) inRun(name string) string {
	if s.o.Prefix == "" {
		return name
	}
	return s.o.Prefix + "/" + name
}

// Planned is what a run says of the suite before anything is sent.
func (s *Suite) Planned() exchange.Replay {
	r := s.planned
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Cases = slices.Clone(s.kept)
	return r
}

// Tally is where the exchanges of the run are counted.
func (s *Suite) Tally() *Tally { return s.tally }

// Warmups are the requests that were sent before the first wave.
func (s *Suite) Warmups() []exchange.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.warmed)
}

// Sent is how many exchanges have ended and how many cases are judged, of how many.
func (s *Suite) Sent() (exchanges, cases, planned int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent, s.judged, len(s.o.Members)
}

// Run sends all waves to the target. When ctx ends no more are sent and the running ones are cut; the error says why the
// suite did not come to its end. A failed case is no error.
func (s *Suite) Run(ctx context.Context, t Target) error {
	run, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	defer context.AfterFunc(ctx, func() { cut(proxy.ErrShutdown) })()
	return (&suiteRun{Suite: s, target: t, run: run}).Run(ctx)
}

// suiteRun is one Run of a suite.
type suiteRun struct {
	*Suite
	target Target
	ctx    context.Context // as long as requests are sent
	run    context.Context // as long as they may run
	ending sync.Mutex      // held while Case is told
}

// Run warms up and sends the waves. Its error is that of the suite's.
func (r *suiteRun) Run(ctx context.Context) error {
	r.ctx = ctx
	if err := r.warmUp(); err != nil {
		return err
	}
	for _, cases := range r.waves {
		if err := r.wave(cases); err != nil {
			return err
		}
	}
	return nil
}

// wave sends the cases of a wave together, and judges them.
func (r *suiteRun) wave(cases []*SuiteCase) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	errs := make([]error, len(cases))
	drafts := make([]*draft, len(cases))
	for i, c := range cases { // before the first one is sent
		if c.refused = r.o.Lacking.of(c); c.refused != nil {
			continue
		}
		if drafts[i], errs[i] = r.draft(c, 0, nil); errs[i] != nil {
			return errs[i]
		}
	}
	var all sync.WaitGroup
	gate := make(chan struct{})
	for i, c := range cases {
		all.Go(func() {
			<-gate
			if errs[i] = r.talk(c, drafts[i]); errs[i] == nil {
				errs[i] = r.ended(c)
			}
		})
	}
	close(gate)
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if r.nobodyThere() {
		return errNobodyThere
	}
	w := &SuiteWave{Name: r.inRun(cases[0].Wave()), Cases: cases}
	w.Wall, _ = wallOf(cases...)
	for _, c := range cases {
		if err := r.judge(c); err != nil {
			return err
		}
	}
	r.keep(cases)
	if r.o.Wave == nil {
		return nil
	}
	return r.o.Wave(w)
}

// ended tells of a case that has ended before the others of its wave.
func (r *suiteRun) ended(c *SuiteCase) error {
	if r.o.Case == nil || r.ctx.Err() != nil {
		return nil
	}
	r.ending.Lock()
	defer r.ending.Unlock()
	if err := r.judge(c); err != nil {
		return err
	}
	return r.o.Case(c)
}

// judge judges a case once, where cases are judged here.
func (r *suiteRun) judge(c *SuiteCase) error {
	if r.o.Unjudged || c.judged {
		return nil
	}
	c.judged = true
	return c.judge()
}

// keep writes what the cases came to into those that the run keeps.
func (s *Suite) keep(cases []*SuiteCase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.judged += len(cases)
	for _, c := range cases {
		c.keep(&s.kept[c.at])
	}
}

// nobodyThere reports whether no request found an engine, of enough.
func (r *suiteRun) nobodyThere() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.found == 0 && r.lost >= min(firstLinks, len(r.o.Members))
}

// draft makes the request of a turn, as the engine spells it.
func (r *suiteRun) draft(c *SuiteCase, turn int, answers []scenario.Answer) (*draft, error) {
	req, err := c.Request(r.options(c.Member), answers)
	if err != nil {
		return nil, err
	}
	c.Asked = append(c.Asked, req)
	it := c.item(req)
	if it.Body, err = r.o.Spelling.spell(req, r.o.Options.Stream && !c.Blocking); err != nil {
		return nil, fmt.Errorf("spell turn %d of case %s: %w", turn+1, c.Tag(), err)
	}
	session := exchange.Header{}
	if r.o.Session != "" {
		session = exchange.Header{Name: r.o.Session, Value: tokenOf(r.o.Salt, "session "+c.Tag())}
	}
	d, err := r.o.Changes.draftOf(it, 0, "", session)
	if err != nil {
		return nil, err
	}
	for _, n := range d.notes {
		if n.Kind == KindNotCarried && !r.o.Changes.Lossy {
			return nil, fmt.Errorf("case %s: %w: %s: %s", c.Tag(), ErrLossy, n.Name, n.Reason)
		}
	}
	return d, nil
}

// item is a request as an item of a workload.
func (c *SuiteCase) item(req scenario.Request) *Item {
	return &Item{ID: c.turnID(req.Turn), Conversation: c.Case.ID, Turn: req.Turn, At: AtUnknown, Method: req.Method, Target: req.Path, Body: req.Body,
		Headers: []exchange.Header{{Name: "Content-Type", Value: "application/json"}, {Name: "Accept-Encoding", Value: "identity"}}}
}

func (c *SuiteCase) turnID(turn int) string {
	if c.Member.Turns == 1 {
		return c.Case.ID
	}
	return c.Case.ID + "/" + strconv.Itoa(turn+1)
}

// spell merges what the engine wants into a body.
func (sp *Spelling) spell(req scenario.Request, streamed bool) (json.RawMessage, error) {
	switchTo := sp.ThinkingOff
	if req.Thinking {
		switchTo = sp.ThinkingOn
	}
	objects := []json.RawMessage{switchTo}
	if streamed {
		objects = append(objects, sp.Timings)
	}
	if req.Cold {
		objects = append(objects, sp.NoCache)
	}
	body := jsonBody(req.Body)
	for _, o := range objects {
		fields := map[string]json.RawMessage{}
		if len(o) > 0 && string(o) != "null" {
			if err := json.Unmarshal(o, &fields); err != nil {
				return nil, fmt.Errorf("read spelling: %w", err)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			out, _, err := body.set(jsonPath{{name: name, index: -1}}, string(fields[name]))
			if err != nil {
				return nil, err
			}
			body = out
		}
	}
	return json.RawMessage(body), nil
}

// ask sends a turn, and again where the engine wants something said otherwise, or later.
func (r *suiteRun) ask(c *SuiteCase, turn int, d *draft) *exchange.Exchange {
	waits := 0
	for attempt := 0; ; attempt++ {
		_ = r.lessons.apply(0, d) // a body of ours can be changed
		call := d.call()
		call.Cell, call.Wave = r.o.Cell, r.waveOf(c.Member, turn)
		call.Item = &exchange.PlanItem{Item: c.turnID(turn), Turn: turn, Turns: c.Member.Turns, Repeat: c.Member.Repeat, Attempt: attempt}
		if c.Member.Turns > 1 {
			call.Item.Conversation = c.Case.ID
		}
		x := r.do(call)
		if !r.again(d, x, &waits) {
			return x
		}
	}
}

// again reports whether a request is to be sent once more: the engine wants it spelled otherwise, or has said when to come
// back, and then it is time. waits counts how often it had to be waited for.
func (r *suiteRun) again(d *draft, x *exchange.Exchange, waits *int) bool {
	if r.lessons.learn(0, d, x) {
		return r.ctx.Err() == nil
	}
	wait, asked := retryAfter(x)
	if !asked || *waits >= DefaultRetries {
		return false
	}
	*waits++
	return waitUntil(r.ctx, clock.Now().Add(wait))
}

func (r *suiteRun) do(call proxy.Call) *exchange.Exchange {
	x := r.target.Session.Do(r.run, r.target.Upstream, call, nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent++
	if x.End == exchange.EndConnectFailed {
		r.lost++
	} else {
		r.found++
	}
	return x
}
