#!/bin/sh
# Measures what traces cost: recording with every exchange exported to a collector of little work, and with a trace's header
# alone, beside recording without traces, in interleaved rounds of one run. The flags of scripts/bench.sh work here too. It
# takes two to three minutes.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
BENCH_COMMAND="scripts/bench-tracing.sh${*:+ $*}" exec "$root/scripts/bench.sh" \
	-rounds 20 -targets direct,record,traced,unsampled -only ttft,events,json "$@"
