#!/usr/bin/env bash
# Runs the tests of the Node adapters beside the oldest versions of the frameworks that one folder can hold only once.
#
# usage: node.sh. Needs what `make build/node` builds; changes nothing outside build/frameworks/node.
set -euo pipefail
cd "$(dirname "$0")/../.."

source=tests/frameworks/node
there=build/frameworks/node
if ! cmp -s "$source/package-lock.json" "$there/made-from.json"; then
	rm -rf "$there"
	mkdir -p "$there"
	cp "$source/package.json" "$source/package-lock.json" "$there"
	npm ci --prefix "$there" --no-audit --no-fund --loglevel=error
	cp "$source/package-lock.json" "$there/made-from.json"
fi
# Where npm would install the package, so that what it imports is found beside it.
rm -rf "$there/node_modules/doorkeep" "$there"/*.mjs "$there/support"
mkdir -p "$there/node_modules/doorkeep/bindings-node"
cp package.json "$there/node_modules/doorkeep"
cp -r bindings-node/dist "$there/node_modules/doorkeep/bindings-node"
tests=(guards lost-clients nestjs express-rate-limit)
for name in "${tests[@]}"; do cp "tests/node/$name.test.mjs" "$there"; done
cp -r tests/node/support "$there"

echo "== node, NestJS 11.0 and express-rate-limit 7.5"
node --test "$there"/*.test.mjs
