#!/bin/sh
# The whole job on a real engine of yours: benchproxy starts it, records, identifies, replays and stands in for it, judges
# it with the dev suite and runs a small matrix. It takes minutes, and is no part of CI.
#
#	LLAMA_SERVER=/path/to/llama-server MODEL=/path/to/model.gguf scripts/live.sh
#	OLLAMA=/path/to/ollama MODEL=qwen3:4b scripts/live.sh
#
# With both engines, MODEL is llama-server's and OLLAMA_MODEL is Ollama's. BACKEND is cpu, ggml_cuda ... where the engine
# is not to choose; CONTEXT is the window of the gates where the engine does not tell it. What is recorded stays in STORE.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
die() {
	echo "live: $1" >&2
	exit 2
}
llama=${LLAMA_SERVER:-}
ollama=${OLLAMA:-}
[ -n "$llama$ollama" ] || die "name an engine: LLAMA_SERVER=FILE MODEL=FILE, or OLLAMA=FILE MODEL=NAME"
if [ -n "$llama" ]; then
	[ -x "$llama" ] || die "LLAMA_SERVER=$llama is no program"
	[ -n "${MODEL:-}" ] || die "llama-server needs MODEL=FILE.gguf"
	[ -f "$MODEL" ] || die "MODEL=$MODEL is not there"
	ollama_model=${OLLAMA_MODEL:-}
else
	ollama_model=${OLLAMA_MODEL:-${MODEL:-}}
fi
if [ -n "$ollama" ]; then
	[ -x "$ollama" ] || die "OLLAMA=$ollama is no program"
	[ -n "$ollama_model" ] || die "Ollama needs MODEL=NAME (or OLLAMA_MODEL=NAME, beside llama-server's MODEL)"
fi

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
(cd "$root" && CGO_ENABLED=0 go build -o "$tmp/benchproxy" ./cmd/benchproxy)
(cd "$root/test/engine" && go test -c -o "$tmp/launched.test" ./launched)

# live ENGINE PROGRAM MODEL
live() {
	echo "== $1: $2, model $3"
	(cd "$tmp" && TEST_BENCHPROXY="$tmp/benchproxy" TEST_STORE="${STORE:-$tmp/store}-$1" TEST_ENGINE="$1" TEST_BINARY="$2" TEST_MODEL="$3" \
		TEST_BACKEND="${BACKEND:-}" TEST_GATE_CONTEXT="${CONTEXT:-}" "$tmp/launched.test" -test.v -test.timeout 3h)
}
if [ -n "$llama" ]; then live llamacpp "$(realpath "$llama")" "$(realpath "$MODEL")"; fi
if [ -n "$ollama" ]; then live ollama "$(realpath "$ollama")" "$ollama_model"; fi
