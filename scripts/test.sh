#!/bin/sh
# The unit and integration tests, with the race detector. It needs Go and a C compiler; on Debian it installs the latter.
set -eu
cd "$(dirname "$0")/.."
command -v gcc >/dev/null 2>&1 || ./scripts/setup-debian.sh
# The whole path is held against the clock of a scripted engine: it gets the machine to itself.
others=$(go list ./... | grep -v '/internal/e2e$') # none is a failure
CGO_ENABLED=1 go test -race -count=1 -timeout 20m $others
CGO_ENABLED=1 go test -race -count=1 -timeout 20m ./internal/e2e

# How much was held against the wire: go test keeps the counts of what passes to itself.
CGO_ENABLED=1 go test -race -count=1 -v -run '^Test(Vectors|Captures|FieldReports|UsageFilterOnVectors)$' ./internal/wire |
	sed -n 's/^ *[a-z_]*_test\.go:[0-9]*: \([0-9].*\)/\1/p' | grep .
