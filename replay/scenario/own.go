package scenario

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/strict"
)

// SuiteOwn holds the scenarios of the user.
const SuiteOwn = "own"

// ownLine is a line of a file of scenarios.
type ownLine struct {
	ID         string           `json:"id"`
	Summary    string           `json:"summary"`
	Version    int              `json:"version"`
	Messages   []ownMessage     `json:"messages"`
	Then       []string         `json:"then"`
	MaxTokens  int              `json:"max_tokens"`
	Body       json.RawMessage  `json:"body"`
	Checks     []exchange.Check `json:"checks"`
	Modality   string           `json:"modality"`
	Blocking   bool             `json:"blocking"`
	Streams    int              `json:"streams"`
	Repeats    int              `json:"repeats"`
	HalfBudget bool             `json:"half_budget"`
}

type ownMessage struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls []call          `json:"tool_calls"`
	CallID    string          `json:"tool_call_id"`
}

// ownID is what ids of scenarios look like: they are part of the names of files.
var ownID = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,63}$`)

// mostLine is the longest line of a file of scenarios, in bytes.
const mostLine = 64 << 20

// ReadOwn reads scenarios of the user's, a JSON object a line; lines that are empty or begin with # are passed over. Its
// keys:
//
//	id           in lower case, one of no other scenario
//	messages     those of the first request, as chat completions have them
//	then         what the user says behind each answer, for conversations
//	max_tokens   128 unless stated
//	body         an object of further fields of the request: tools, response_format, temperature (0 unless stated) ...
//	checks       by which gates the answers are judged: [{"gate": ..., "params": ...}]; usage and the end are always looked at
//	summary, version, modality, blocking, streams, repeats, half_budget: see Scenario
//
// valid says whether a check is one that there is: gates.Validate. The error wraps exchange.ErrUsage and names the line.
func ReadOwn(r io.Reader, valid func(exchange.Check) error) ([]Scenario, error) {
	var out []Scenario
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, mostLine)
	for n := 1; lines.Scan(); n++ {
		line := lines.Bytes()
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")) // some editors begin files with it
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		s, err := readOwn(line, valid)
		if err == nil && slices.ContainsFunc(out, func(other Scenario) bool { return other.ID == s.ID }) {
			err = fmt.Errorf("id %q is that of an earlier line", s.ID)
		}
		if err != nil {
			return nil, fmt.Errorf("read scenarios: %w: line %d: %w", exchange.ErrUsage, n, err)
		}
		out = append(out, s)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read scenarios: %w", err)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("read scenarios: %w: there is none", exchange.ErrUsage)
	}
	return out, nil
}

func readOwn(line []byte, valid func(exchange.Check) error) (Scenario, error) {
	if line[0] == '[' || line[0] == '"' {
		return Scenario{}, errors.New("it is no JSON object")
	}
	var l ownLine
	if err := strict.Decode(line, &l, ""); err != nil {
		return Scenario{}, err
	}
	if err := l.fault(); err != nil {
		return Scenario{}, err
	}
	for _, c := range l.Checks {
		if err := valid(c); err != nil {
			return Scenario{}, fmt.Errorf("checks: %w", err)
		}
	}
	body, temperature, err := l.further()
	if err != nil {
		return Scenario{}, err
	}
	messages := make([]message, len(l.Messages))
	for i, m := range l.Messages {
		if messages[i], err = m.message(); err != nil {
			return Scenario{}, fmt.Errorf("message %d: %w", i+1, err)
		}
	}
	s := Scenario{
		ID: l.ID, Suite: SuiteOwn, Summary: l.Summary, Version: max(l.Version, 1), Turns: 1 + len(l.Then), Modality: l.Modality,
		Blocking: l.Blocking, Streams: l.Streams, Repeats: l.Repeats, HalfBudget: l.HalfBudget, maxTokens: l.MaxTokens,
		first: func(Options) chat {
			return chat{Messages: slices.Clone(messages), Temperature: temperature, more: body}
		},
		checks: append([]exchange.Check{{Gate: "usage_present"}, check("finish_reason", `{"allow":["stop","length","tool_calls"]}`)}, l.Checks...),
	}
	if s.stated = s.maxTokens > 0; !s.stated {
		s.maxTokens = UnstatedTokens
	}
	sum := sha256.Sum256(line)
	s.Line = exchange.DigestPrefix + hex.EncodeToString(sum[:])
	if s.Summary == "" {
		s.Summary = "a scenario of the user's"
	}
	if len(l.Then) > 0 {
		s.next = goesOn(l.Then)
	}
	return s, nil
}

// fault is what is wrong with a line, besides its messages, body and checks.
func (l *ownLine) fault() error {
	_, builtIn := Lookup(l.ID)
	switch {
	case !ownID.MatchString(l.ID):
		return fmt.Errorf("id %q: it is made of lower case letters, digits, dots, dashes and underscores", l.ID)
	case builtIn || slices.ContainsFunc(List(), func(e Entry) bool { return e.Name == l.ID }) || sized(l.ID):
		return fmt.Errorf("id %q is that of a built-in scenario", l.ID)
	case len(l.Messages) == 0:
		return errors.New("messages: there is none")
	case min(l.MaxTokens, l.Streams, l.Repeats, l.Version) < 0:
		return errors.New("a number is below 0")
	case !slices.Contains([]string{"", ModalityImage, ModalityAudio, ModalityVideo}, l.Modality):
		return fmt.Errorf("modality %q: it is image, audio or video", l.Modality)
	}
	return nil
}

// sized says whether a name begins like one that holds a size.
func sized(id string) bool {
	return slices.ContainsFunc(sizedForms(), func(f sizedForm) bool { _, is := f.size(id); return is })
}

// ownFields are the fields of a body that a scenario states in keys of its own, or the options do.
var ownFields = []string{"model", "messages", "max_tokens", "stream", "stream_options"}

// further are the further fields of the body as an object, nil for none, and the temperature, which has its place in every body.
func (l *ownLine) further() (body json.RawMessage, temperature float64, err error) {
	if len(l.Body) == 0 {
		return nil, 0, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(l.Body, &fields); err != nil {
		return nil, 0, fmt.Errorf("body: %w", err)
	}
	for _, name := range ownFields {
		if _, stated := fields[name]; stated {
			return nil, 0, fmt.Errorf("body: %s is not stated there", name)
		}
	}
	if t, stated := fields["temperature"]; stated {
		if err := json.Unmarshal(t, &temperature); err != nil {
			return nil, 0, fmt.Errorf("body: temperature: %w", err)
		}
		delete(fields, "temperature")
	}
	if len(fields) == 0 {
		return nil, temperature, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(fields); err != nil {
		return nil, 0, fmt.Errorf("body: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), temperature, nil
}

// message is the message as requests have it. Its content is text, a list of parts, or null.
func (m ownMessage) message() (message, error) {
	out := message{Role: m.Role, ToolCalls: m.ToolCalls, CallID: m.CallID}
	if !slices.Contains([]string{"system", "developer", "user", "assistant", "tool"}, m.Role) {
		return out, fmt.Errorf("role %q: it is system, developer, user, assistant or tool", m.Role)
	}
	switch content := bytes.TrimSpace(m.Content); {
	case len(content) == 0 || string(content) == "null":
	case content[0] == '[':
		var parts []contentPart
		if err := strict.Decode(content, &parts, "content"); err != nil {
			return out, err
		}
		out.Content = parts
	default:
		var text string
		if json.Unmarshal(content, &text) != nil {
			return out, errors.New("content: it is text or a list of parts")
		}
		out.Content = text
	}
	return out, nil
}

// goesOn makes the next turns of a conversation: what the user says does not depend on the answers.
func goesOn(said []string) func(Options, int, chat, Answer) (chat, error) {
	return func(_ Options, turn int, before chat, a Answer) (chat, error) {
		switch {
		case len(a.Calls) > 0:
			return chat{}, errors.New("the answer calls a tool, and the scenario has no result for it")
		case strings.TrimSpace(a.Content) == "":
			return chat{}, errors.New("the answer is empty")
		}
		before.Messages = []message{a.told(), user(said[turn])}
		return before, nil
	}
}
