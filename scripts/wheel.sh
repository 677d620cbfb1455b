#!/usr/bin/env bash
# Builds what a release publishes, into dist/: the sdist, and for each target one wheel for CPython 3.11 and later.
# zig, from PyPI, links against the oldest glibc (2.17, manylinux2014) and for macOS; so one Linux machine builds all.
#   scripts/wheel.sh                          for Linux on this machine's processor
#   scripts/wheel.sh TARGET...                for these: x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu
#                                             aarch64-apple-darwin x86_64-apple-darwin
# Rust's library for another target comes by `rustup target add TARGET`.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$(cat .venv/share/mica-cargo-bin):$PATH"
tools=.bench/wheel
[ -x $tools/bin/python ] || .venv/bin/python -m venv $tools
$tools/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements-wheel.lock
export PATH="$PWD/$tools/bin:$PATH" CARGO_TERM_PROGRESS_WHEN=never
# maturin calls zig as the module of this Python.
[ $# -gt 0 ] || set -- "$(uname -m)-unknown-linux-gnu"
$tools/bin/maturin sdist --manifest-path native/py/Cargo.toml --out dist
for target in "$@"; do
    rustup target list --installed 2>/dev/null | grep -qx "$target" || rustup target add "$target" ||
        { echo "wheel: Rust has no library for $target: rustup target add $target" >&2; exit 1; }
    case $target in
    *-linux-gnu) for_target=(--compatibility manylinux2014) link=() ;;
    *-apple-darwin) for_target=() link=(-- -C "link-arg=-F$PWD/scripts/build/macos") ;;
    esac
    $tools/bin/maturin build --quiet --manifest-path native/py/Cargo.toml --release --zig --target "$target" --out dist \
        "${for_target[@]}" "${link[@]}"
done
ls -1 dist
