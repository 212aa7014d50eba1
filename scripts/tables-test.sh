#!/bin/sh
# Exports a run as Parquet tables and has them read by another library, arrow-go, in the module test/tables.
set -eu
cd "$(dirname "$0")/../test/tables"
exec go test -count=1 -timeout 5m ./...
