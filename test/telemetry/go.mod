module github.com/benchproxy/benchproxy/test/telemetry

go 1.26.0
