#!/bin/sh
# Measures what benchproxy adds to an engine's answers beside httputil.ReverseProxy, nginx and haproxy, in interleaved
# rounds of one run, prints the tables and judges the budgets: exit code 0 when all are met, 3 when one is surely not, 4
# when the machine was too noisy to judge one. It takes under eight minutes. The flags of scripts/bench.sh work here too;
#
#   scripts/bench-peers.sh -only json,events -targets direct,record,nginx -rounds 6
#
# runs a part. `make bench-peers` runs all of it and writes bench/RESULTS.md (-markdown FILE).
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
peers=$("$root/scripts/peers-debian.sh")
ulimit -n 16384 2>/dev/null || ulimit -n "$(ulimit -H -n)" # haproxy and nginx do not raise it themselves
BENCH_COMMAND="scripts/bench-peers.sh${*:+ $*}" exec "$root/scripts/bench.sh" \
	-nginx "$peers/nginx" -haproxy "$peers/haproxy" -judge -rounds 12 -large 2 \
	-targets direct,proxy,record,reverseproxy,nginx,haproxy -only ttft,events,json,load,max,ten,paced,gone,memory "$@"
