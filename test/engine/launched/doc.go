// Package launched holds the test of a real engine that benchproxy starts itself: recorded, identified, replayed, stood in
// for, judged and benchmarked through the program's command line, as a script of a user would. Every test leaves nothing
// running behind it. The engine is named by the environment:
//
//	TEST_BENCHPROXY   program under test
//	TEST_STORE        directory of the recordings
//	TEST_ENGINE       id of the engine's profile
//	TEST_BINARY       its program
//	TEST_MODEL        model file, or the name by which the engine knows it
//	TEST_GATE_MODEL   the same for the gates; default TEST_MODEL
//	TEST_GATE_CONTEXT tokens of its window; default: what the engine tells
//	TEST_BACKEND      backend of the gates and the recording; default: the engine chooses
//	TEST_TINY         1: the model has random weights, so that what is asserted of it is known
//
// Run it with scripts/ollama-test.sh or scripts/live.sh.
package launched
