# Short names for what people do here. `make ci` is what the project's CI runs.
.PHONY: build demo test test-clients live lint bench bench-peers bench-stamps bench-tracing ci release clean

build:
	CGO_ENABLED=0 go build -trimpath -o bin/benchproxy ./cmd/benchproxy

demo:
	go run ./cmd/benchproxy demo

test:
	./scripts/test.sh

# The clients of the field, unmodified, through the proxy.
test-clients:
	./scripts/clients-test.sh

# A real engine of yours through everything: LLAMA_SERVER= and MODEL=, or OLLAMA= and MODEL=.
live:
	./scripts/live.sh

lint:
	./scripts/lint.sh

bench:
	./scripts/bench.sh

bench-peers:
	./scripts/bench-peers.sh -markdown bench/RESULTS.md

bench-tracing:
	./scripts/bench-tracing.sh

bench-stamps:
	./scripts/bench-stamps.sh

ci:
	.ci/run

release:
	./scripts/release.sh linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

clean:
	rm -rf bin dist
