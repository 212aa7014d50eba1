package bridge

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/wire"
)

// maker makes requests of what all dialects can say.
type maker struct {
	*rand.Rand
	calls []Call // that have no result yet
	n     int
}

func (m *maker) chance(share int) bool { return m.IntN(100) < share }

// text is short text with what JSON has to escape, and what it need not.
func (m *maker) text() string {
	words := []string{"hi", "<b>&", "\"q\"", "\\", "é\u2028", "\n\t", "🙂", "{}", "null", "a b", "\x00", "</s>"}
	s := "t"
	for range m.IntN(4) {
		s += words[m.IntN(len(words))]
	}
	return s
}

func (m *maker) number() Value {
	return Value{Raw: json.RawMessage([]string{"0", "0.50", "1", "1e-1", "0.123456789012345678"}[m.IntN(5)])}
}

func (m *maker) object() json.RawMessage {
	return json.RawMessage([]string{`{}`, `{"b":1.0,"a":[{"c":null}]}`, `{"s":"<x>é","n":12345678901234567890}`}[m.IntN(3)])
}

func (m *maker) textPart() Part { return Part{Kind: PartText, Text: m.text()} }

// turn adds what the user says and what is answered.
func (m *maker) turn(q *Request) {
	if len(m.calls) > 0 {
		results := Message{Role: RoleTool}
		for _, c := range m.calls {
			results.Parts = append(results.Parts, Part{Kind: PartResult, Result: Result{ID: c.ID, Name: c.Name, Parts: []Part{m.textPart()}}})
		}
		q.Messages = append(q.Messages, results)
		m.calls = nil
	}
	if n := len(q.Messages); n == 0 || q.Messages[n-1].Role != RoleTool || m.chance(50) {
		user := Message{Role: RoleUser}
		for range m.IntN(2) {
			user.Parts = append(user.Parts, Part{Kind: PartImage, Media: Media{Type: "image/png", Data: png}})
		}
		user.Parts = append(user.Parts, m.textPart())
		q.Messages = append(q.Messages, user)
	}
	answer := Message{Role: RoleAssistant}
	for range m.IntN(3) {
		m.n++
		c := Call{ID: fmt.Sprintf("call-%d", m.n), Name: []string{"f", "get_x"}[m.IntN(2)], Arguments: m.object()}
		m.calls = append(m.calls, c)
		answer.Parts = append(answer.Parts, Part{Kind: PartCall, Call: c})
	}
	if len(answer.Parts) == 0 || m.chance(30) {
		answer.Parts = append([]Part{m.textPart()}, answer.Parts...)
	}
	q.Messages = append(q.Messages, answer)
}

func makeRequest(seed uint64) *Request {
	m := &maker{Rand: rand.New(rand.NewPCG(seed, 7))}
	q := &Request{Model: "org/m.1:x", Stream: m.chance(50), Limit: Value{Raw: json.RawMessage("5000")}}
	q.Usage = q.Stream
	if m.chance(60) {
		q.Messages = append(q.Messages, Message{Role: RoleSystem, Parts: []Part{m.textPart()}})
	}
	for range 1 + m.IntN(3) {
		m.turn(q)
	}
	for i := range m.IntN(3) {
		t := Tool{Name: fmt.Sprint("tool", i), Description: m.text()}
		if m.chance(70) {
			t.Parameters = json.RawMessage(`{"type":"object","properties":{"z":{"type":"string","minLength":1},"a":{"enum":["<",1.0]}},"required":["z"]}`)
		}
		q.Tools = append(q.Tools, t)
	}
	for _, o := range []Option{OptionTemperature, OptionTopP, OptionTopK} {
		if m.chance(40) {
			if q.Sampling == nil {
				q.Sampling = map[Option]Value{}
			}
			q.Sampling[o] = m.number()
		}
	}
	for range m.IntN(3) {
		q.Stop.Texts = append(q.Stop.Texts, m.text())
	}
	if m.chance(40) {
		q.Format = Format{JSON: true, Name: defaultFormatName, Strict: true, Schema: json.RawMessage(`{"type":"object","properties":{"k":{"type":"array","items":{"type":"integer"}}},"additionalProperties":false}`)}
	}
	if m.chance(40) {
		q.Thinking.Mode = Off
	}
	return q
}

// FuzzThereAndBack holds that a request that all dialects can say is the same request after a way through two of them,
// and that nothing is told to have changed on that way.
func FuzzThereAndBack(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(seed, uint8(seed), uint8(seed/4))
	}
	dialects := Dialects()
	f.Fuzz(func(t *testing.T, seed uint64, a, b uint8) {
		from, to := dialects[int(a)%len(dialects)], dialects[int(b)%len(dialects)]
		q := makeRequest(seed)
		first := Write(q, vllm(from))
		if len(first.Changes) > 0 {
			t.Fatalf("%s has no place for %s", from, told(first.Changes))
		}
		there, err := Translate(from, first.Target, first.Body, vllm(to), "")
		if err != nil {
			t.Fatal(err)
		}
		back, err := Translate(to, there.Target, there.Body, vllm(from), "")
		if err != nil {
			t.Fatal(err)
		}
		if len(there.Changes)+len(back.Changes) > 0 {
			t.Errorf("%s to %s and back changed %s, %s", from, to, told(there.Changes), told(back.Changes))
		}
		if string(back.Body) != string(first.Body) || back.Target != first.Target {
			t.Errorf("%s to %s and back: %s", from, to, cmp.Diff(string(first.Body), string(back.Body)))
		}
		again, changes, err := Read(from, back.Target, back.Body)
		if err != nil || len(changes) > 0 {
			t.Fatalf("%v, %s", err, told(changes))
		}
		if diff := cmp.Diff(q, again, sameRequest); diff != "" {
			t.Errorf("%s to %s and back: %s", from, to, diff)
		}
	})
}

// FuzzRead holds that whatever is sent is read without harm, and what is read is written as a body that can be read again
// with nothing unknown in it.
func FuzzRead(f *testing.F) {
	for d, s := range said {
		for i, known := range Dialects() {
			if known == d {
				f.Add(uint8(i), uint8(i+1), []byte(s.body))
			}
		}
	}
	for _, tc := range turns {
		_, body := talk(tc.from, tc.give)
		f.Add(uint8(0), uint8(1), []byte(body))
	}
	dialects := Dialects()
	f.Fuzz(func(t *testing.T, a, b uint8, body []byte) {
		from, to := dialects[int(a)%len(dialects)], dialects[int(b)%len(dialects)]
		if from == to {
			return
		}
		got, err := Translate(from, said[from].target, body, vllm(to), "m")
		if err != nil {
			return
		}
		_, changes, err := Read(to, got.Target, got.Body)
		if err != nil {
			t.Fatalf("%s: %v", got.Body, err)
		}
		for _, c := range changes {
			if c.Reason == reasonUnknown && to != wire.DialectChat {
				t.Errorf("%s has %s, which its reader does not know", got.Body, c.Path)
			}
		}
		Turns(to, got.Body)
	})
}
