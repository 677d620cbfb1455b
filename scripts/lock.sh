#!/usr/bin/env bash
# Writes requirements.lock (run time), requirements-dev.lock (tests, lint), requirements-build.lock (the kernel's build),
# requirements-docs.lock (the site), requirements-wheel.lock:
# exact versions with hashes for every platform from Python 3.11 on, and no index address. And THIRD-PARTY.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
uv=.venv/bin/uv
[ -x "$uv" ] || uv=uv
compile() {
    local out=$1
    shift
    "$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
        --custom-compile-command "scripts/lock.sh" --output-file "$out" "$@"
}
compile requirements.lock pyproject.toml --group pins
compile requirements-dev.lock pyproject.toml --group pins --group dev --constraints requirements.lock
compile requirements-build.lock --group build --constraints requirements-dev.lock
compile requirements-docs.lock --group docs --constraints requirements-dev.lock
compile requirements-wheel.lock --group wheel --constraints requirements-dev.lock
for peer in benchmarks/requirements/*.in; do
    compile "${peer%.in}.lock" "$peer"
done
if grep -nE '://|--(extra-)?index' requirements*.lock benchmarks/requirements/*.lock; then
    echo "a lock names an address" >&2
    exit 1
fi
.venv/bin/python scripts/third_party.py
