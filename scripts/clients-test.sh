#!/bin/sh
# Runs the clients of the field, unmodified, through `benchproxy record` against `benchproxy sim`, and holds every record
# to the truth of the scripted engine: the Go clients in test/clients, and with node those of npm in test/clients/npm.
# Then the engine is ended, `benchproxy replay --serve` answers from the record, and each client must get the same again.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
tmp=$(mktemp -d)
pids=""
cleanup() {
	for p in $pids; do kill "$p" 2>/dev/null || true; done
	for p in $pids; do wait "$p" 2>/dev/null || true; done
	rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# The packages of npm are installed once for a lock file, outside of what git sees.
npm=$root/.cache/clients-npm
mkdir -p "$npm"
cp "$root/test/clients/npm/clients.mjs" "$root/test/clients/npm/package.json" "$npm/"
if ! cmp -s "$root/test/clients/npm/package-lock.json" "$npm/installed.json"; then
	rm -f "$npm/installed.json"
	cp "$root/test/clients/npm/package-lock.json" "$npm/"
	(cd "$npm" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
	cp "$npm/package-lock.json" "$npm/installed.json"
fi

# Proxy and engine run under the race detector. The clients do not: their packages take minutes to instrument.
(cd "$root" && CGO_ENABLED=1 go build -race -o "$tmp/benchproxy-race" ./cmd/benchproxy && CGO_ENABLED=0 go build -o "$tmp/benchproxy" ./cmd/benchproxy)
(cd "$root/test/clients" && go test -c -o "$tmp/clients.test" .)

# served NAME ARGS starts benchproxy in the background, waits until it says where it serves, and leaves that in url.
served() {
	name=$1
	shift
	: >"$tmp/$name.json" # there before the loop looks for it
	"$tmp/benchproxy-race" "$@" --listen 127.0.0.1:0 --json >"$tmp/$name.json" 2>"$tmp/$name.log" &
	pid=$!
	pids="$pids $pid"
	url=""
	for _ in $(seq 100); do
		url=$(sed -n 's/.*"url":"\([^"]*\)".*/\1/p' "$tmp/$name.json")
		[ -n "$url" ] && break
		sleep 0.1
	done
	[ -n "$url" ] || { echo "clients-test: $name did not start" >&2; cat "$tmp/$name.log" >&2; exit 1; }
}
served sim sim --set "ttft=50ms; prefill=2000; decode=200; jitter=0.3"
engine=$pid

# The proxy asks the engine nothing of its own: the engine's account is that of the clients' requests.
mkdir "$tmp/work" "$tmp/answers"
cd "$tmp/work"
export TEST_BENCHPROXY="$tmp/benchproxy" TEST_STORE="$tmp/store" TEST_NPM="$npm" TEST_ANSWERS="$tmp/answers"
TEST_ENGINE=$url \
	"$tmp/benchproxy-race" record --upstream "$url" --listen 127.0.0.1:0 --admin 127.0.0.1:0 --store "$tmp/store" --run clients --no-identify \
	-- "$tmp/clients.test" -test.v -test.timeout 10m
"$tmp/benchproxy" store check --store "$tmp/store"

# The same clients, with no engine. A request that is not in the record would end the stand-in with exit code 4.
kill "$engine"
served stand-in replay --serve clients --store "$tmp/store" --speed 4
TEST_ENGINE=$url TEST_SERVED=1 "$tmp/clients.test" -test.v -test.timeout 5m -test.run '^(TestChat|TestMessages|TestGemini|TestOllama|TestResponses|TestNPM)$'
kill "$pid"
wait "$pid" || { echo "clients-test: the stand-in ended with $?" >&2; cat "$tmp/stand-in.log" "$tmp/stand-in.json" >&2; exit 1; }
tail -n 1 "$tmp/stand-in.json"
