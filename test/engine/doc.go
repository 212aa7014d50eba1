// Package engine holds the test of the main job on a real inference engine: official clients talk to a live Ollama
// through `benchproxy record`, and the records are held to the engine's own word. It is a module of its own, so that
// the clients' dependencies stay out of the product's. Run it with scripts/ollama-test.sh, which makes the model
// (package tinymodel) and starts the engine.
package engine
