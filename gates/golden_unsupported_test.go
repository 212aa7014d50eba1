package gates

import (
	"encoding/json"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// TestEnginesWithoutImagesOrTools holds that a capability which an engine refuses in so many words is no failure, and
// that any other refusal is no such word.
func TestEnginesWithoutImagesOrTools(t *testing.T) {
	for _, c := range []struct {
		gate, says string
		code       int
		status     exchange.VerdictStatus
	}{
		{"vision", "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj", 500, exchange.VerdictUnsupported},
		{"vision", "m is not a multimodal model", 400, exchange.VerdictUnsupported},
		{"vision", "At most 0 image(s) may be provided in one prompt.", 400, exchange.VerdictUnsupported},
		{"vision", "This model does not support image input", 422, exchange.VerdictUnsupported},
		{"vision", "messages[0]: unknown variant `image_url`, expected `text`", 422, exchange.VerdictUnsupported},
		{"vision", "this model is missing data required for image input", 500, exchange.VerdictUnsupported},
		{"vision", "the image is too large", 400, exchange.VerdictIncomparable},
		{"vision", "out of memory", 500, exchange.VerdictIncomparable},
		{"vision", "image input is not supported", 503, exchange.VerdictIncomparable},
		{"agent_turns", "this model does not support tools", 400, exchange.VerdictUnsupported},
		{"agent_turns", "out of memory", 500, exchange.VerdictIncomparable},
	} {
		body, err := json.Marshal(map[string]any{"error": map[string]any{"message": c.says}})
		if err != nil {
			t.Fatal(err)
		}
		x := spoken{status: c.code, body: string(body)}.exchange()
		x.Request.Target = "/v1/chat/completions"
		v, needs, err := Judge(Prepare(&exchange.Case{ID: "c", Exchanges: []*exchange.Exchange{x}}), exchange.Check{Gate: c.gate})
		if err != nil || len(needs) > 0 || v.Status != c.status {
			t.Errorf("%s of %d %q: %s %s, %d needs, %v", c.gate, c.code, c.says, v.Status, v.Reason, len(needs), err)
		}
	}
}
