package gates

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// capability is something that an engine may lack and, when it is asked for it, says that it lacks.
type capability struct {
	name  string
	lacks string   // what an engine without it does, in words
	gates []string // to which the lack is no failure
	said  func(Turn) string
	asked func(*askingBody) bool
}

func capabilities() []capability {
	return []capability{
		{"tools", "has no tools", []string{useGateID, "agent_turns"}, Turn.unsupported, func(b *askingBody) bool { return len(b.Tools) > 0 }},
		{"images", "takes no images", []string{"vision"}, Turn.takesNoImages, func(b *askingBody) bool { return b.holds("image_url", "input_image", "image") }},
		{"audio", "takes no audio", nil, Turn.takesNoAudio, func(b *askingBody) bool { return b.holds("input_audio", "audio") }},
	}
}

// askingBody is what of a request tells which capabilities it needs.
type askingBody struct {
	Tools    []json.RawMessage `json:"tools"`
	Messages []struct {
		Content json.RawMessage   `json:"content"`
		Images  []json.RawMessage `json:"images"` // Ollama's
	} `json:"messages"`
}

// holds reports whether a message has a part of one of the types.
func (b *askingBody) holds(types ...string) bool {
	for _, m := range b.Messages {
		var parts []struct {
			Type string `json:"type"`
		}
		if slices.Contains(types, "image_url") && len(m.Images) > 0 {
			return true
		}
		if json.Unmarshal(m.Content, &parts) != nil { // a text has no parts
			continue
		}
		for _, p := range parts {
			if slices.Contains(types, p.Type) {
				return true
			}
		}
	}
	return false
}

// Needs is the capability without which the checks of a case say unsupported; "" for other cases.
func Needs(checks []exchange.Check) string {
	for _, c := range capabilities() {
		for _, check := range checks {
			for _, gate := range c.gates {
				if check.Gate == gate {
					return c.name
				}
			}
		}
	}
	return ""
}

// Refuses is what an answer says that refuses a capability in so many words; "" for every other answer.
func Refuses(x *exchange.Exchange, name string) string {
	for _, c := range capabilities() {
		if c.name == name {
			return c.said(Prepare(&exchange.Case{Exchanges: []*exchange.Exchange{x}}).Turns[0])
		}
	}
	return ""
}

// Asks are the capabilities that a request of chat completions, or of Ollama's chat, needs: tools that it declares, pictures
// and sounds that it holds. A body that cannot be read needs none.
func Asks(body []byte) (names []string) {
	var b askingBody
	if json.Unmarshal(body, &b) != nil {
		return nil
	}
	for _, c := range capabilities() {
		if c.asked(&b) {
			names = append(names, c.name)
		}
	}
	return names
}

// Lacks is the capability that a request asked for and its answer refused in so many words, with a sentence that says so;
// "" for every other answer, such as a refusal of one tool or of one picture.
func Lacks(x *exchange.Exchange) (name, why string) {
	for _, asked := range Asks(x.Request.Body.Bytes()) {
		for _, c := range capabilities() {
			if c.name != asked {
				continue
			}
			if said := Refuses(x, asked); said != "" {
				return asked, "the engine " + c.lacks + ": " + said
			}
		}
	}
	return "", ""
}

// noAudio matches what engines say that take no sounds, in lower case. A refusal of one recording, for its length or form,
// is none of these.
var noAudio = regexp.MustCompile(`audio (input|content|inputs) (is|are) (not supported|unsupported|not enabled)` +
	`|(does not|doesn't|do not|don't|cannot) (support|accept|take|process) (the )?(audio|multimodal|multi-modal)` +
	`|(audio|multimodal|multi-modal|input_audio)( input| inputs)? (is|are) (not (supported|enabled|available|allowed)|unsupported)` +
	`|not a (multimodal|multi-modal)|at most 0 audio|(unknown|unsupported|invalid|unexpected)[^.]{0,40}\binput_audio\b`)

// takesNoAudio is what an engine said that takes no sounds and says so; "" for everything else.
func (t Turn) takesNoAudio() string {
	switch t.Response.Status {
	case http.StatusBadRequest, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity, http.StatusInternalServerError, http.StatusNotImplemented:
	default:
		return ""
	}
	if said := t.said(); noAudio.MatchString(strings.ToLower(said)) {
		return excerpt(oneLine(said))
	}
	return ""
}
