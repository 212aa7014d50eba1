#!/bin/sh
# Fetches nginx and haproxy from Debian into .cache/peers and prints the path of a folder that holds a program of each.
#
# The packages are unpacked, not installed: Debian starts both as services when it installs them, which would take ports
# and processor time of the machine that measures, and would need root. The programs run from the folder, with the
# libraries that came with them. What is installed already is used as it is.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cache=$root/.cache/peers

# runs PROGRAM is true when it starts.
runs() { [ -x "$cache/bin/$1" ] && "$cache/bin/$1" -v >/dev/null 2>&1; }

missing=""
mkdir -p "$cache/bin"
for p in nginx haproxy; do
	found=$(command -v "$p" || true)
	[ -n "$found" ] && ln -sfn "$found" "$cache/bin/$p"
	runs "$p" || missing="$missing $p"
done
[ -n "$missing" ] || { echo "$cache/bin"; exit 0; }

log=$(mktemp)
trap 'rm -f "$log"' EXIT
fetch() {
	# The packages and all they need that this machine lacks, as apt itself would install them.
	# shellcheck disable=SC2086  # the list is split on purpose
	all=$(apt-get install -s --no-install-recommends $missing 2>"$log" | sed -n 's/^Inst \([^ ]*\).*/\1/p')
	[ -n "$all" ] || return 1
	# shellcheck disable=SC2086
	(cd "$cache/debs" && apt-get download $all >"$log" 2>&1)
}
rm -rf "$cache/debs" "$cache/root"
mkdir -p "$cache/debs" "$cache/root"
# The package lists of a fresh image are old or absent: refresh them only when the first try does not succeed.
if ! fetch; then
	sudo=""
	[ "$(id -u)" -eq 0 ] || sudo="sudo -n"
	{ $sudo apt-get update -qq >"$log" 2>&1 && fetch; } || { cat "$log" >&2; exit 1; }
fi
for d in "$cache"/debs/*.deb; do
	dpkg -x "$d" "$cache/root"
done

libraries=$(find "$cache/root" -name 'lib*.so.*' -exec dirname {} + | sort -u | paste -sd:)
for p in $missing; do
	printf '#!/bin/sh\nLD_LIBRARY_PATH='\''%s'\'' exec '\''%s'\'' "$@"\n' "$libraries" "$cache/root/usr/sbin/$p" >"$cache/bin/$p.new"
	chmod +x "$cache/bin/$p.new"
	mv -f "$cache/bin/$p.new" "$cache/bin/$p"
	runs "$p" || { echo "peers-debian: $p was fetched and does not run:" >&2; "$cache/bin/$p" -v >&2; exit 1; }
done
echo "peers-debian: fetched$missing" >&2
echo "$cache/bin"
