#!/bin/sh
# Builds Jaeger from the module tools/jaeger, which pins its version, into .cache/jaeger/bin and prints the path of the
# binary. Skips the build when the binary is there and of the right version. The first build takes some ten minutes on
# two cores; the web pages of Jaeger are not in its module, the query API is.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cache=$root/.cache/jaeger
binary=$cache/bin/jaeger
version=$(sed -n 's|^[[:space:]]*github.com/jaegertracing/jaeger \(v[0-9.]*\).*|\1|p' "$root/tools/jaeger/go.mod")
[ -n "$version" ] || { echo "jaeger-build: tools/jaeger/go.mod names no version of Jaeger" >&2; exit 1; }

is_current() {
	# The build information of the binary names the module it was built from.
	[ -x "$binary" ] && go version -m "$binary" 2>/dev/null | grep -qF "github.com/jaegertracing/jaeger	$version	"
}

if ! is_current; then
	echo "jaeger-build: building jaeger $version" >&2
	mkdir -p "$cache/bin"
	(
		cd "$root/tools/jaeger"
		GOWORK=off GOFLAGS='' CGO_ENABLED=0 nice -n 15 \
			go build -p 1 -trimpath -ldflags '-s -w' -o "$binary" github.com/jaegertracing/jaeger/cmd/jaeger
	) >&2
	is_current || { echo "jaeger-build: the binary does not report version $version" >&2; exit 1; }
fi
echo "$binary"
