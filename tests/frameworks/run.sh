#!/usr/bin/env bash
# Runs the tests of the adapters beside versions of the frameworks that .venv does not have. README.md here: the format.
#
# usage: run.sh [NAME...]. Needs a wheel in build/frameworks/wheel; changes nothing outside build/frameworks.
set -euo pipefail
cd "$(dirname "$0")/../.."

field() {
	sed -n "s/^# $1 //p" "tests/frameworks/$2.txt"
}

# The interpreter of a version such as 3.10: on the path, or beside the running one, as pyenv has them.
interpreter() {
	if "python$1" -c '' 2>/dev/null; then
		command -v "python$1"
		return
	fi
	local beside
	beside=$(dirname "$(python3 -c 'import sys; print(sys.base_prefix)')")
	# A folder that is not there is no error.
	{ find "$beside" "${PYENV_ROOT:-$HOME/.pyenv}/versions" -maxdepth 3 -path "*/$1.*/bin/python" 2>/dev/null || true; } |
		sort -V | tail -n 1
}

# Makes the environment NAME, unless it is as its file says; the wheel is put in each time, since it costs nothing.
prepare() {
	local name=$1 python=$2 environment=build/frameworks/$1
	if ! cmp -s "tests/frameworks/$name.txt" "$environment/made-from.txt"; then
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
tested=0
for name in "$@"; do
	version=$(field python "$name")
	python=$(interpreter "$version")
	if [ -z "$python" ]; then
		echo "== $name is not tested: no Python $version. Install it, or put python$version on the path" >&2
		continue
	fi
	prepare "$name" "$python"
	echo "== $name, Python $version"
	# shellcheck disable=SC2046  # several files are several words
	"build/frameworks/$name/bin/python" -m pytest --quiet -p no:cacheprovider $(field tests "$name")
	tested=$((tested + 1))
done
[ "$tested" -gt 0 ] || { echo "nothing was tested: none of the versions of Python is here" >&2; exit 1; }
