package recorder

import "testing"

// TestLookupWithAnotherCredential holds that a request finds its recording whatever key its query carried: the stored
// one is masked, and the one that is looked up is masked before it is keyed.
func TestLookupWithAnotherCredential(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	recorded, asked := streamed(`{"a":1}`, "x"), streamed(`{"a":1}`, "x")
	recorded.Request.Target = "/v1/chat/completions?key=AIza-one"
	asked.Request.Target = "/v1/chat/completions?key=AIza-two"
	recordAll(t, s, "r", recorded)
	takes, err := s.Lookup(&asked.Request)
	if err != nil || len(takes) != 1 {
		t.Errorf("takes %+v, %v; want the recorded one", takes, err)
	}
	if asked.Request.Target != "/v1/chat/completions?key=AIza-two" {
		t.Errorf("the request was changed: %s", asked.Request.Target)
	}
}
