// Package telemetry holds tests alone: they run benchproxy in front of its scripted engine with a real Jaeger as the
// collector, and compare what Jaeger has with what the store has. scripts/telemetry-test.sh builds the programs and names
// them in TEST_BENCHPROXY, TEST_JAEGER and TEST_PROMTOOL.
package telemetry
