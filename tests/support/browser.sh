#!/usr/bin/env bash
# Finds the browser that the tests open pages in, and prints it as a line that a shell can read in.
#
# Debian's Chromium: taken from the path, installed where root may. Opens nothing.
set -euo pipefail

find_chromium() {
	command -v chromium || command -v chromium-browser || true
}

chromium=$(find_chromium)
if [ -z "$chromium" ]; then
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		echo "no chromium: install it, as by \`apt-get install chromium\`" >&2
		exit 1
	fi
	apt-get -qq update >&2
	DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends chromium >&2
	chromium=$(find_chromium)
fi
"$chromium" --version >&2
printf 'export DOORKEEP_CHROMIUM=%q\n' "$chromium"
