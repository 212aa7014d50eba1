#!/bin/sh
# Builds Ollama from its Go module into .cache/ollama/bin and prints the path of the binary. Skips the build when the
# binary is there and of the right version. The first build takes about four minutes on two cores.
#
# The module zip of Ollama lacks every folder named "vendor", and so the header-only libraries of its llama.cpp. Two
# of them come from Debian (scripts/setup-debian.sh), the third from another Go module that carries it.
set -eu

version=0.17.4
malgo=v0.11.24

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cache=$root/.cache/ollama
binary=$cache/bin/ollama

is_current() {
	# --version warns on stderr when no server runs; its stdout names the client's version.
	[ -x "$binary" ] && HOME=$cache OLLAMA_HOST=127.0.0.1:1 "$binary" --version 2>/dev/null | grep -qF "$version"
}

if is_current; then
	echo "$binary"
	exit 0
fi

mkdir -p "$cache/bin" "$cache/include/miniaudio"
for f in /usr/include/nlohmann/json.hpp /usr/include/nlohmann/json_fwd.hpp /usr/include/stb/stb_image.h; do
	[ -f "$f" ] || { echo "ollama-build: $f is missing: run scripts/setup-debian.sh" >&2; exit 1; }
done
ln -sfn /usr/include/nlohmann "$cache/include/nlohmann"
ln -sfn /usr/include/stb "$cache/include/stb"

# Outside any module, so that nothing is written to a go.mod.
malgo_dir=$(cd "$cache" && GOFLAGS=-mod=mod go mod download -json "github.com/gen2brain/malgo@$malgo" |
	sed -n 's/^[[:space:]]*"Dir": "\(.*\)",*$/\1/p')
[ -f "$malgo_dir/miniaudio.h" ] || { echo "ollama-build: no miniaudio.h in module malgo $malgo" >&2; exit 1; }
install -m 0644 "$malgo_dir/miniaudio.h" "$cache/include/miniaudio/miniaudio.h"

echo "ollama-build: building ollama $version" >&2
(
	cd "$cache"
	GOWORK=off GOFLAGS='' GOBIN=$cache/bin CGO_ENABLED=1 \
		CGO_CFLAGS="-O2 -g0 -I$cache/include" CGO_CXXFLAGS="-O2 -g0 -I$cache/include" \
		nice -n 15 go install -p 1 -ldflags "-X=github.com/ollama/ollama/version.Version=$version" \
		"github.com/ollama/ollama@v$version"
) >&2

is_current || { echo "ollama-build: the binary does not report version $version" >&2; exit 1; }
echo "$binary"
