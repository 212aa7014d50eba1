#!/bin/sh
# The unit and integration tests, with the race detector. It needs Go and a C compiler; on Debian it installs the latter.
set -eu
cd "$(dirname "$0")/.."
command -v gcc >/dev/null 2>&1 || ./scripts/setup-debian.sh
CGO_ENABLED=1 exec go test -race -count=1 -timeout 20m ./...
