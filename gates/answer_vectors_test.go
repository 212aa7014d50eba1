package gates

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// strictCase are the vectors of the answer gates. An unknown key would be a rule that nobody holds.
type strictCase struct {
	ID, Title, Area, Seed, Confidence, Notes string

	Input struct {
		AcceptFenced bool `json:"accept_fenced_json"`
		Answers      []struct {
			Scenario string  `json:"scenario"`
			Content  *string `json:"content"`
			Finish   string  `json:"finish_reason"`
			Usage    bool    `json:"usage_present"`
			Note     *string `json:"note"`
		} `json:"answers"`
		Texts  map[string]string `json:"texts"`
		Decode []struct {
			Tokens  json.RawMessage `json:"completion_tokens"`
			Max     int64           `json:"max_tokens"`
			Finish  string          `json:"finish_reason"`
			Content string          `json:"content"`
		} `json:"decode"`
	}
	Expected struct {
		Answers []struct {
			Status  exchange.VerdictStatus `json:"status"`
			Lenient exchange.VerdictStatus `json:"lenient_status"`
		} `json:"answers"`
		Decode []exchange.VerdictStatus `json:"decode"`
	}
}

func strictVectors(t *testing.T) strictCase {
	t.Helper()
	raw, err := os.ReadFile("testdata/answer-semantics.json")
	if err != nil {
		t.Fatal(err)
	}
	var index struct {
		Format int
		Cases  []strictCase
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&index); err != nil {
		t.Fatal(err)
	}
	if index.Format != 1 || len(index.Cases) != 1 || index.Cases[0].ID != "strict_gates" {
		t.Fatalf("format %d with %d cases", index.Format, len(index.Cases))
	}
	c := index.Cases[0]
	if len(c.Input.Answers) == 0 || len(c.Input.Answers) != len(c.Expected.Answers) || len(c.Input.Decode) == 0 || len(c.Input.Decode) != len(c.Expected.Decode) {
		t.Fatal("no vectors, or not one expectation for each")
	}
	return c
}

// judgeScenario is what the checks of a scenario come to.
func judgeScenario(t *testing.T, scenario string, x *exchange.Exchange) (status, lenient exchange.VerdictStatus, why string) {
	t.Helper()
	checks, ok := ForScenario(scenario)
	if !ok {
		t.Fatalf("scenario %s has no checks", scenario)
	}
	var all []exchange.Verdict
	for _, c := range checks {
		v := judged(t, c, x)
		all = append(all, v)
		why += fmt.Sprintf(" %s=%s(%s)", v.Gate, v.Status, v.Reason)
	}
	status, lenient = Sum(all)
	return status, lenient, why
}

func TestStrictGateVectors(t *testing.T) {
	c := strictVectors(t)
	for i, in := range c.Input.Answers {
		a := spoken{content: in.Content, finish: in.Finish, thought: "42"}
		if !in.Usage {
			a.usage = json.RawMessage("null")
		}
		status, lenient, why := judgeScenario(t, in.Scenario, a.exchange())
		if want := c.Expected.Answers[i]; status != want.Status || lenient != want.Lenient {
			t.Errorf("answer %d: %s, lenient %s; want %+v:%s", i, status, lenient, want, why)
		}
	}
	for i, in := range c.Input.Decode {
		a := spoken{
			content: c.Input.Texts[in.Content], finish: in.Finish,
			request: fmt.Sprintf(`{"max_tokens":%d,"messages":[]}`, in.Max),
			usage:   json.RawMessage(fmt.Sprintf(`{"prompt_tokens":20,"completion_tokens":%s}`, in.Tokens)),
		}
		status, _, why := judgeScenario(t, "decode", a.exchange())
		if status != c.Expected.Decode[i] {
			t.Errorf("decode %d: %s, want %s:%s", i, status, c.Expected.Decode[i], why)
		}
	}
	short := spoken{content: c.Input.Texts["@short"], finish: "length", request: `{"max_tokens":512}`, usage: json.RawMessage(`{"prompt_tokens":20,"completion_tokens":512}`)}
	if status, _, why := judgeScenario(t, "decode", short.exchange()); status != exchange.VerdictFail {
		t.Errorf("300 characters and less: %s:%s", status, why)
	}
}

// TestStrictGateVectorsStreamed holds that an answer is judged alike when it comes as a stream.
func TestStrictGateVectorsStreamed(t *testing.T) {
	c := strictVectors(t)
	for i, in := range c.Input.Answers {
		body := ""
		if in.Content != nil {
			for _, r := range *in.Content {
				body += fmt.Sprintf("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s}}]}\n\n", text(string(r)))
			}
		}
		body += fmt.Sprintf("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%s}]}\n\n", text(in.Finish))
		if in.Usage {
			body += "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":5}}\n\n"
		}
		x := spoken{body: body + "data: [DONE]\n\n"}.exchange()
		x.Response.Headers[0].Value = "text/event-stream"
		status, lenient, why := judgeScenario(t, in.Scenario, x)
		if want := c.Expected.Answers[i]; status != want.Status || lenient != want.Lenient {
			t.Errorf("answer %d: %s, lenient %s; want %+v:%s", i, status, lenient, want, why)
		}
	}
}
