#!/usr/bin/env bash
# Finds the nginx that the tests start themselves, and prints it as a line that a shell can read in.
#
# Debian's: taken from the path, installed where root may, and else unpacked beside the build. Starts nothing.
set -euo pipefail
cd "$(dirname "$0")/../.."

find_nginx() {
	# A user's path often lacks sbin.
	PATH="$PATH:/usr/sbin:$PWD/build/nginx-deb/usr/sbin" command -v nginx || true
}

# Debian's package, unpacked and not installed: what a user without root may do.
unpack_nginx() {
	mkdir -p build/nginx-deb/lists/partial build/nginx-deb/cache/archives/partial
	local apt=(apt-get -qq -o Debug::NoLocking=1 -o "Dir::State::lists=$PWD/build/nginx-deb/lists" -o "Dir::Cache=$PWD/build/nginx-deb/cache")
	"${apt[@]}" update
	(cd build/nginx-deb
	"${apt[@]}" download nginx
	dpkg -x nginx_*.deb .)
}

nginx=$(find_nginx)
if [ -z "$nginx" ]; then
	command -v apt-get >/dev/null || { echo "no nginx: install it, as by \`apt-get install nginx\`" >&2; exit 1; }
	if [ "$(id -u)" = 0 ]; then
		apt-get -qq update >&2
		# RUNLEVEL=1: the package must not start a server of its own.
		RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends nginx >&2
	else
		unpack_nginx >&2
	fi
	nginx=$(find_nginx)
	[ -n "$nginx" ] || { echo "no nginx: apt-get brought none, install it by hand" >&2; exit 1; }
fi
"$nginx" -v >&2
printf 'export DOORKEEP_NGINX=%q\n' "$nginx"
