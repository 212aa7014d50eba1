#!/bin/sh
# Traces and metrics with the real tools: a Jaeger on loopback takes the spans of recordings, replays, benches, gates and
# stand-ins, and what it gives back is compared with the store; promtool reads /metrics. Collectors that make trouble cost
# spans and nothing else. Nothing is left running.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
command -v promtool >/dev/null || "$root/scripts/setup-debian.sh"
TEST_JAEGER=$("$root/scripts/jaeger-build.sh")
TEST_PROMTOOL=$(command -v promtool)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
TEST_BENCHPROXY=$tmp/benchproxy
export TEST_JAEGER TEST_PROMTOOL TEST_BENCHPROXY
(cd "$root" && CGO_ENABLED=0 go build -o "$TEST_BENCHPROXY" ./cmd/benchproxy)
cd "$root/test/telemetry"
# No variable of the caller's own tracing may reach the programs.
unset $(env | sed -n 's/^\(OTEL_[A-Z_]*\)=.*/\1/p') 2>/dev/null || true
go test -count=1 -timeout 10m "$@" ./...
