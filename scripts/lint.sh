#!/bin/sh
# Formatting, vet and the linters of tools/go.mod over every module of the repository. Any finding is a failure.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
bin=$root/.cache/tools
mkdir -p "$bin"
(cd tools && for t in $(go tool | grep '/'); do go build -o "$bin/$(basename "$t")" "$t"; done)

unformatted=$(git ls-files '*.go' | xargs gofmt -l)
if [ -n "$unformatted" ]; then
	echo "gofmt would change:" "$unformatted" >&2
	exit 1
fi
for mod in $(git ls-files '*go.mod'); do
	dir=$(dirname "$mod")
	case $dir in tools | tools/*) continue ;; esac # they hold no code of ours
	echo "lint $dir"
	cd "$root/$dir"
	go mod tidy -diff
	go vet ./...
	"$bin/staticcheck" ./...
	"$bin/errcheck" -exclude "$root/scripts/errcheck.txt" ./...
	"$bin/ineffassign" ./...
done
cd "$root"
git ls-files '*.go' | xargs "$bin/gocyclo" -over 20
