#!/bin/sh
# Installs the Debian packages that the tests and the real-engine step need. Idempotent and quiet; needs root or sudo.
#
#   gcc, g++, libc6-dev    cgo, for the race detector and for building the engine
#   nlohmann-json3-dev     headers that the engine's module zip leaves out
#   libstb-dev             the same
#   git, ca-certificates   the Go toolchain fetches modules with them
#   prometheus             promtool, which checks the metrics; its server is not started by us
#   nodejs, npm            the JavaScript clients, where no node and npm are there already
#   chromium, fonts-dejavu-core   the pages are tested in it, where no chromium is there already
set -eu

packages="gcc g++ libc6-dev nlohmann-json3-dev libstb-dev git ca-certificates prometheus"
command -v chromium >/dev/null || packages="$packages chromium fonts-dejavu-core"
command -v node >/dev/null && command -v npm >/dev/null || packages="$packages nodejs npm"

missing=""
for p in $packages; do
	status=$(dpkg-query -W -f='${Status}' "$p" 2>/dev/null || true)
	[ "$status" = "install ok installed" ] || missing="$missing $p"
done
[ -n "$missing" ] || exit 0

sudo=""
if [ "$(id -u)" -ne 0 ]; then
	command -v sudo >/dev/null || { echo "setup-debian: root or sudo is needed to install:$missing" >&2; exit 1; }
	sudo="sudo -n"
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
	# shellcheck disable=SC2086  # the list is split on purpose
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >"$log" 2>&1
}
# The package lists of a fresh image are old or absent: refresh them only when the first try does not succeed.
if ! install; then
	$sudo apt-get update -qq >"$log" 2>&1 && install || { cat "$log" >&2; exit 1; }
fi
echo "setup-debian: installed$missing"
