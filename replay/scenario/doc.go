// Package scenario builds the requests of the built-in scenarios: what is asked, in an engine-neutral form, how a
// conversation goes on, and by which gates its answers are judged.
//
// A Scenario is data with two pure functions: the first request, and the next request from the one before and its
// answer. All bodies are those of chat completions; whoever sends them spells them for the engine. Scenario.Request puts
// the functions together (scenario.go), chat.go is the form of a body, plan.go lists the cases of a suite, and the
// scenarios themselves are a file each kind (validation.go, policies.go, workflows.go, code.go, tooluse.go, levels.go, and of
// the run matrix text.go, sized.go and media.go); prose.go makes the text of long prompts, assets.go pictures and sounds.
// named.go finds any of them by the name that people write, own.go reads those of the user.
//
// Invariants:
//
//   - The same options and answers give the same bytes, today and on every machine: recordings are found by their key.
//   - What tells requests apart (nonce, tag) stands at the very beginning of the prompt, where it defeats prefix caches.
//   - A conversation is never continued from an answer that lacks what the next turn rests on: it stops, and says why.
//   - Nothing is executed. Results of tools are fixtures, the same for every engine.
//   - A case under a changed policy (serial tools, structured results, thinking) says so in its policy word.
package scenario
