#!/bin/sh
# 64 clients that come and go at bad moments for half a minute, under the race detector. A thousand streams at once through
# `benchproxy record`, and a proxy that is killed in the middle of two hundred: the program is built as it is released. And
# the tests of the benchmark and of what it stands on. It takes about three minutes and reaches no network beyond this machine.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
(cd "$root" && CGO_ENABLED=1 go test -race -count=1 -v -timeout 8m -run '^TestChurn$' ./internal/e2e -churn 30s)
(cd "$root" && CGO_ENABLED=0 go build -trimpath -o "$tmp/benchproxy" ./cmd/benchproxy)
cd "$root/test/load"
TEST_BENCHPROXY=$tmp/benchproxy TMPDIR=$tmp go test -count=1 -v -timeout 8m . ./rig ./bench ./stamps "$@"
