#!/usr/bin/env bash
# Runs the tests of the adapters beside versions of the frameworks that .venv does not have. README.md here: the format.
#
# usage: run.sh [NAME...]. Needs a wheel in build/frameworks/wheel; changes nothing outside build/frameworks.
set -euo pipefail
cd "$(dirname "$0")/../.."

field() {
	sed -n "s/^# $1 //p" "tests/frameworks/$2.txt"
}

# The interpreter of a version such as 3.10.
interpreter() {
	command -v "python$1" && "python$1" -c '' 2>/dev/null && return
	local found
	found=$(find "$HOME/.pyenv/versions" -path "*/$1.*/bin/python" 2>/dev/null | sort -V | tail -n 1)
	[ -n "$found" ] || { echo "no Python $1: install it, or put python$1 on the path" >&2; return 1; }
	echo "$found"
}

# Makes the environment NAME, unless it is as its file says; the wheel is put in each time, since it costs nothing.
prepare() {
	local name=$1 python environment=build/frameworks/$1
	if ! cmp -s "tests/frameworks/$name.txt" "$environment/made-from.txt"; then
		python=$(interpreter "$(field python "$name")" | tail -n 1)
		rm -rf "$environment"
		"$python" -m venv "$environment"
		# A pin of the file must win over that of constraints.txt, which pip would call a conflict.
		grep -v '^#' "tests/frameworks/$name.txt" | sed -E 's/\[.*//; s/[^A-Za-z0-9._-].*//' | tr '[:upper:]_' '[:lower:]-' > "$environment/named.txt"
		awk -F '[=;]' 'NR == FNR { named[$1]; next } { name = tolower($1); gsub("_", "-", name) } !(name in named)' \
			"$environment/named.txt" constraints.txt > "$environment/constraints.txt"
		"$environment/bin/python" -m pip install --quiet --disable-pip-version-check \
			--requirement "tests/frameworks/$name.txt" --constraint "$environment/constraints.txt"
		cp "tests/frameworks/$name.txt" "$environment/made-from.txt"
	fi
	"$environment/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall build/frameworks/wheel/*.whl
}

[ $# -gt 0 ] || set -- $(basename -s .txt tests/frameworks/*.txt)
for name in "$@"; do
	prepare "$name"
	echo "== $name, Python $(field python "$name")"
	# shellcheck disable=SC2046  # several files are several words
	"build/frameworks/$name/bin/python" -m pytest --quiet -p no:cacheprovider $(field tests "$name")
done
