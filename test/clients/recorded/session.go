package recorded

import (
	"context"
	"testing"
	"time"
)

// patience bounds one test, on a busy machine.
const patience = 2 * time.Minute

// Session watches what one test adds to the store. Tests that use it must not run in parallel.
type Session struct {
	Store Store
	Ctx   context.Context // ends with the test, or after two minutes
	after uint64
}

// Begin starts watching.
func Begin(t *testing.T) *Session {
	t.Helper()
	s, err := FromEnv()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	list, err := s.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	session := &Session{Store: s, Ctx: ctx}
	for _, x := range list {
		session.after = max(session.after, x.Seq)
	}
	return session
}

// Stored waits for the n exchanges that were made since Begin or the last Stored. More than n fail the test: a client
// request was made twice.
func (s *Session) Stored(t *testing.T, n int) []Exchange {
	t.Helper()
	list, err := s.Store.After(s.Ctx, s.after, n)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != n {
		t.Fatalf("%d exchanges are stored, want %d", len(list), n)
	}
	for _, x := range list {
		s.after = max(s.after, x.Seq)
		if x.State != "stored" || x.ParseErrors != 0 {
			t.Errorf("exchange %d: state %s, %d parse errors", x.Seq, x.State, x.ParseErrors)
		}
	}
	return list
}

// Complete is Stored for exchanges that must be complete.
func (s *Session) Complete(t *testing.T, n int) []Exchange {
	t.Helper()
	list := s.Stored(t, n)
	for _, x := range list {
		if x.Outcome != "complete" || x.Status != 200 {
			t.Errorf("exchange %d %s: outcome %s, status %d, end %s", x.Seq, x.Path, x.Outcome, x.Status, x.End)
		}
	}
	return list
}

// Near fails the test when a metric is absent, or further from want than share of it plus slack.
func (x Exchange) Near(t *testing.T, name string, want, share, slack float64) {
	t.Helper()
	got, ok := x.Metric(name)
	if !ok {
		t.Errorf("exchange %d: %s is absent: %s", x.Seq, name, x.Absent[name])
		return
	}
	if diff := max(got-want, want-got); diff > want*share+slack {
		t.Errorf("exchange %d: %s is %v, want %v within %v of it and %v", x.Seq, name, got, want, share, slack)
	}
}
