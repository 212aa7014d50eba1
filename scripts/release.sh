#!/bin/sh
# Builds one static binary for each GOOS/GOARCH named, into dist/.
set -eu
cd "$(dirname "$0")/.."
mkdir -p dist
for target in "$@"; do
	os=${target%/*} arch=${target#*/} ext=
	[ "$os" = windows ] && ext=.exe
	out=dist/benchproxy-$os-$arch$ext
	CGO_ENABLED=0 GOOS=$os GOARCH=$arch go build -trimpath -ldflags '-s -w' -o "$out" ./cmd/benchproxy
	echo "$out"
done
