#!/bin/sh
# The main job on a real engine: starts Ollama on loopback with a tiny random model of our own making, and runs official
# clients against it through `benchproxy record`; then has benchproxy start it itself, for all that it does with an engine.
# Nothing reaches the network beyond this machine, and nothing is left running.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
ollama=$("$root/scripts/ollama-build.sh")
tmp=$(mktemp -d)
server=""
stop_engine() {
	[ -n "$server" ] || return 0
	# The engine and its runners are one process group.
	kill -s TERM -- "-$server" 2>/dev/null || true
	for _ in $(seq 50); do
		kill -s 0 -- "-$server" 2>/dev/null || break
		sleep 0.1
	done
	kill -s KILL -- "-$server" 2>/dev/null || true
	server=""
}
cleanup() {
	stop_engine
	rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

(cd "$root" && CGO_ENABLED=0 go build -o "$tmp/benchproxy" ./cmd/benchproxy)
(cd "$root/test/engine" && go test -count=1 ./tinymodel && go run ./mkmodel "$tmp/tiny.gguf" &&
	go test -c -o "$tmp/engine.test" . && go test -c -o "$tmp/launched.test" ./launched)

# One thread: two spin against each other when the machine has little to give.
cat >"$tmp/Modelfile" <<'MODELFILE'
FROM ./tiny.gguf
TEMPLATE """{{- range .Messages }}<|im_start|>{{ .Role }}
{{ .Content }}<|im_end|>
{{ end }}<|im_start|>assistant
"""
PARAMETER num_ctx 2048
PARAMETER num_thread 1
MODELFILE
# The gates fill the window: of a small one that takes seconds.
sed 's/num_ctx 2048/num_ctx 512/' "$tmp/Modelfile" >"$tmp/Modelfile.small"

mkdir "$tmp/home" "$tmp/work"
# A proxy that cannot be reached turns any attempt to go outside into an error.
engine_env="HOME=$tmp/home OLLAMA_MODELS=$tmp/models OLLAMA_NUM_PARALLEL=2 OLLAMA_KEEP_ALIVE=10m OLLAMA_NO_CLOUD=1
	HTTP_PROXY=http://127.0.0.1:9 HTTPS_PROXY=http://127.0.0.1:9 NO_PROXY=127.0.0.1,localhost"
: >"$tmp/engine.log" # there before the loop looks for it
# shellcheck disable=SC2086  # the list is split on purpose
setsid env $engine_env OLLAMA_HOST=127.0.0.1:0 "$ollama" serve >"$tmp/engine.log" 2>&1 &
server=$!
addr=""
for _ in $(seq 300); do
	addr=$(sed -n 's/.*Listening on \(127\.0\.0\.1:[0-9]*\).*/\1/p' "$tmp/engine.log")
	[ -n "$addr" ] && break
	sleep 0.1
done
[ -n "$addr" ] || { echo "ollama-test: the engine did not start" >&2; cat "$tmp/engine.log" >&2; exit 1; }

# shellcheck disable=SC2086  # as above
(cd "$tmp" && env $engine_env OLLAMA_HOST="$addr" "$ollama" create tiny -f Modelfile &&
	env $engine_env OLLAMA_HOST="$addr" "$ollama" create small -f Modelfile.small) >"$tmp/create.log" 2>&1 ||
	{ echo "ollama-test: the models were not created" >&2; cat "$tmp/create.log" "$tmp/engine.log" >&2; exit 1; }

cd "$tmp/work"
status=0
TEST_BENCHPROXY=$tmp/benchproxy TEST_STORE=$tmp/store \
	"$tmp/benchproxy" record --upstream "http://$addr" --listen 127.0.0.1:0 --admin 127.0.0.1:0 --store "$tmp/store" --run engine \
	-- "$tmp/engine.test" -test.v -test.timeout 15m || status=$?
"$tmp/benchproxy" store check --store "$tmp/store" || status=$?
[ "$status" -eq 0 ] || { tail -n 60 "$tmp/engine.log" >&2; exit "$status"; }
stop_engine

# shellcheck disable=SC2086  # as above
env $engine_env TEST_BENCHPROXY="$tmp/benchproxy" TEST_STORE="$tmp/launched" TEST_ENGINE=ollama TEST_BINARY="$ollama" TEST_BACKEND=cpu \
	TEST_MODEL=tiny TEST_GATE_MODEL=small TEST_GATE_CONTEXT=512 TEST_TINY=1 "$tmp/launched.test" -test.v -test.timeout 15m
