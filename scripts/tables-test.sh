#!/bin/sh
# Exports runs as Parquet tables and has them read by other libraries, arrow-go and DuckDB, in the module test/tables. DuckDB
# needs cgo and a C++ compiler; its library is a download of some 30 MB for a platform.
set -eu
cd "$(dirname "$0")/../test/tables"
exec env CGO_ENABLED=1 go test -count=1 -timeout 5m ./...
