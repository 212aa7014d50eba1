package replay

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// continuing is a request to Responses that continues an answer; "" is none.
func continuing(id, previous string) Item {
	body := fmt.Sprintf(`{"model":"sim","input":"say %s","max_output_tokens":3}`, id)
	if previous != "" {
		body = fmt.Sprintf(`{"model":"sim","previous_response_id":%q,"input":"say %s","max_output_tokens":3}`, previous, id)
	}
	it := asked(id, 0, body)
	it.Target = "/v1/responses"
	it.identify(it.Body)
	return it
}

// TestAnAnswerThatIsNamedMakesAConversation holds how requests find the answers they continue, also two of one answer.
func TestAnAnswerThatIsNamedMakesAConversation(t *testing.T) {
	found := newTalks()
	var got []string
	for _, q := range []struct{ id, previous, response string }{
		{"a", "", "r-a"}, {"x", "", "r-x"}, {"b", "r-a", "r-b"}, {"c", "r-a", "r-c"}, {"d", "r-c", ""}, {"e", "r-unknown", "r-e"}, {"f", "r-b", "r-f"},
	} {
		it := continuing(q.id, q.previous)
		it.Conversation, it.Response = q.id, q.response
		found.join(&it, it.Body)
		found.answered(&it)
		got = append(got, fmt.Sprint(it.Conversation, it.Turn))
	}
	if want := []string{"a0", "x0", "a1", "a2", "a3", "e0", "a4"}; !slices.Equal(got, want) {
		t.Errorf("turns %q, want %q", got, want)
	}
	chat := asked("chat", 0, `{"previous_response_id":"r-a","messages":[]}`)
	chat.Conversation = "chat"
	if found.join(&chat, chat.Body); chat.Conversation != "chat" {
		t.Error("a chat request continues an answer of Responses")
	}
}

// TestLaterTurnsContinueTheAnswersOfNow plays a conversation with a branch: each turn names the new answer in the place
// of the recorded one, and the record tells it.
func TestLaterTurnsContinueTheAnswersOfNow(t *testing.T) {
	for name, known := range map[string]bool{"recorded answers": true, "a file without answers": false} {
		t.Run(name, func(t *testing.T) {
			w := &Workload{Name: "talk"}
			for turn, previous := range []string{"", "r-0", "r-1", "r-elsewhere"} {
				it := continuing(fmt.Sprint(turn), previous)
				it.Conversation, it.Turn = "talk", turn
				if known {
					it.Response = fmt.Sprint("r-", turn)
					if turn == 2 { // goes back to the first answer
						it.Body = []byte(fmt.Sprintf(`{"model":"sim","previous_response_id":"r-0","input":"say %d","max_output_tokens":3}`, turn))
					}
				}
				w.Items = append(w.Items, it)
			}
			rig{engine: steady}.play(t, w, PlanOptions{Loop: LoopClosed}, func(t *testing.T, p *played) {
				if r := p.report(t); r.Items.Complete != 1 {
					t.Fatalf("items %+v", r.Items)
				}
				var ids []string
				for turn, x := range p.records[0].measured() {
					var sent struct {
						Previous string `json:"previous_response_id"`
					}
					if err := json.Unmarshal(x.Request.Body.Bytes(), &sent); err != nil {
						t.Fatal(err)
					}
					want := map[bool][]string{
						true:  {"", at0(ids, 0), at0(ids, 0), "r-elsewhere"}, // of no turn: the engine may know it
						false: {"", at0(ids, 0), at0(ids, 1), at0(ids, 2)},   // that of the turn before, for all that is known
					}[known][turn]
					if sent.Previous != want {
						t.Errorf("turn %d continues %q, want %q of %q", turn, sent.Previous, want, ids)
					}
					told := slices.ContainsFunc(x.Interventions, func(i exchange.Intervention) bool {
						return i.Name == previousField && i.To == quoted(want) && i.Reason == "live_response"
					})
					if changed := turn > 0 && want != "r-elsewhere"; told != changed {
						t.Errorf("turn %d tells of the change: %v", turn, told)
					}
					id := wire.Parse(x).ID
					if id == "" {
						t.Fatal("the answer has no id")
					}
					ids = append(ids, id)
				}
			})
		})
	}
}

// at0 is an element of a list that may not be there yet.
func at0(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return ""
}
