package matrix

// Tokens that requests need besides what is known of them.
const (
	usualPrompt = 1024 // of a prompt of which nothing is known
	framing     = 128  // of the chat around it
	ollamaOwn   = 4096 // window that Ollama takes by itself, and cuts prompts to without a word
)

// LlamaContext is the context that llama-server is started with: the configured one, raised to what the longest of the
// selected prefill scenarios needs with any tokenizer.
func LlamaContext(configured int, scenarios []string) int {
	for _, id := range scenarios {
		if n, ok := PrefillTarget(id); ok {
			configured = max(configured, prompt(n)+framing)
		}
	}
	return configured
}

// prompt is what a nominal number of tokens can come to: tokenizers differ.
func prompt(nominal int) int { return int(float64(nominal) * 1.3) }

// Need is the number of tokens that the longest request of a scenario can take, with answers of maxTokens.
func (s *Scenario) Need(maxTokens int) int {
	if s.Context > 0 {
		return s.Context
	}
	if n, ok := PrefillTarget(s.ID); ok {
		return max(prompt(n)+framing, prompt(n)+maxTokens)
	}
	return prompt(s.Prompt) + usualPrompt + framing + max(s.Turns, 1)*maxTokens // each answer stands in the next prompt
}

// window is the window of one request that a server is started for; 0 leaves it to the engine.
func (b *builder) window(e *Engine, cells []Cell, slots int) int {
	l := e.Profile.Launch
	if stated := or(b.c.Defaults.Context, e.Context); stated > 0 {
		return stated
	}
	need := 0
	for i := range cells {
		if cells[i].Do == DoRun {
			need = max(need, b.c.scenario(cells[i].Scenario).Need(cells[i].MaxTokens))
		}
	}
	switch {
	case e.is("llamacpp"):
		return max(need, perSlot(b.c.Llama.Context, slots))
	case servesMany(e) && l.Does("context"):
		return max(need, ollamaOwn)
	}
	return 0
}

// perSlot is the part of a context that each slot gets, rounded up.
func perSlot(context, slots int) int {
	slots = max(slots, 1)
	return (context + slots - 1) / slots
}
