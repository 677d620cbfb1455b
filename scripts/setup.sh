#!/usr/bin/env bash
# Makes .venv with everything the lock names and builds the kernel into it, in release mode.
# What the machine lacks is installed from Debian's packages where that is possible (Debian, root); otherwise one
# sentence says what to install. A second run finds its stamps and repeats no work.
#   scripts/setup.sh            for running
#   scripts/setup.sh --tests    also what the tests need: Maven, and by it delta-spark's jars; Chromium
set -euo pipefail
cd "$(dirname "$0")/.."
tests=no
[ "${1:-}" = "--tests" ] && tests=yes

say() { echo "setup: $*" >&2; }
refuse() {
    say "$*"
    exit 1
}
updated=no
# apt PACKAGE...: true when they are installed afterwards.
apt() {
    [ -f /etc/debian_version ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    if [ $updated = no ]; then
        apt-get update -qq >&2 || return 1
        updated=yes
    fi
    # Without a word if this Debian does not have them: other names follow.
    apt-get install --simulate -qq "$@" >/dev/null 2>&1 || return 1
    say "installing $* from the distribution's packages"
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# --- Python 3.11 or newer, with venv -------------------------------------------------------------------------------
good_python() { "$1" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
find_python() {
    local p
    for p in "${PYTHON:-python3}" python3.14 python3.13 python3.12 python3.11 /usr/bin/python3; do
        if command -v "$p" >/dev/null && good_python "$p"; then
            command -v "$p"
            return 0
        fi
    done
    return 1
}
python=$(find_python) || { apt python3 python3-venv && python=$(find_python); } ||
    refuse "Python 3.11 or newer with its venv module is needed: install python3 and python3-venv."

# --- Java 17 or newer ----------------------------------------------------------------------------------------------
good_java() {
    local java="${JAVA_HOME:+$JAVA_HOME/bin/}java" version
    version=$("$java" -version 2>&1 | sed -nE 's/.* version "([0-9]+).*/\1/p' | head -n 1) || return 1
    [ -n "$version" ] && [ "$version" -ge 17 ]
}
good_java || { apt openjdk-17-jre-headless && good_java; } || { apt default-jre-headless && good_java; } ||
    refuse "Java 17 or newer is needed by Spark: install a JRE (Debian: openjdk-17-jre-headless), or let JAVA_HOME name it."

# --- Rust 1.88 or newer: rustup's, or Debian 12's rustc-web (its plain rustc is 1.63) --------------------------------
good_rust() {
    local version
    command -v cargo >/dev/null || return 1
    version=$(rustc --version 2>/dev/null | sed -nE 's/^rustc 1\.([0-9]+)\..*/\1/p') || return 1
    [ -n "$version" ] && [ "$version" -ge 88 ]
}
good_rust || PATH="$HOME/.cargo/bin:$PATH"
good_rust || PATH="/usr/bin:$PATH"
good_rust || { apt rustc-web cargo-web rustfmt-web rust-web-clippy && good_rust; } || { apt rustc cargo && good_rust; } ||
    refuse "Rust 1.88 or newer is needed to build the kernel: install rustc and cargo (Debian 12: rustc-web, cargo-web)."
export PATH
command -v cc >/dev/null || apt gcc libc6-dev || refuse "A C compiler is needed to build zstd: install gcc."

# Where nothing is built yet, the crates come while .venv is made; cargo asks again for what did not.
ls src/mica/_native*.so >/dev/null 2>&1 || cargo fetch --quiet --locked --manifest-path native/Cargo.toml \
    --target "$(rustc -vV | sed -n 's/^host: //p')" 2>/dev/null &

# --- Chromium, which the tests of pages ask ------------------------------------------------------------------------------
[ $tests = no ] || command -v chromium >/dev/null || apt chromium || say "no Chromium: the tests of pages are skipped"

# --- .venv from the locks --------------------------------------------------------------------------------------------
# Its programs name it by its whole path: after a clone was moved or copied they run elsewhere, or not at all.
at_its_place() {
    local here
    here=$(cd ./.venv 2>/dev/null && pwd -P)/bin/python
    [ -x .venv/bin/python ] && grep -qsF -e "#!$here" -e "' $here" -e "\"$here" .venv/bin/pip
}
at_its_place && good_python .venv/bin/python || { rm -rf .venv && "$python" -m venv .venv; }
# Each lock that is installed has a line in the stamp. The tests' lock holds what the others hold, in the same versions.
stamp=.venv/mica-locks.stamp
sum() { { .venv/bin/python -V; cat "$1"; } | sha256sum; }
has() { grep -qxF "$(sum "$1")" $stamp 2>/dev/null; }
# Python compiles what it imports; all of it beforehand would take as long as the rest of the installation. PySpark comes as
# sources: the wheel that is made of them and unpacked at once is not compressed.
install() {
    printf '[bdist_wheel]\ncompression = stored\n' >.venv/mica-wheels.cfg
    DIST_EXTRA_CONFIG=$PWD/.venv/mica-wheels.cfg .venv/bin/python -m pip install --quiet --no-compile \
        --disable-pip-version-check --require-hashes --no-deps -r "$1" &&
        sum "$1" >>$stamp
}
lock=requirements.lock
[ $tests = no ] || lock=requirements-dev.lock
has requirements-build.lock || has requirements-dev.lock || install requirements-build.lock
# The packages come while the kernel is compiled.
packages=
trap '[ -z "$packages" ] || kill "$packages" 2>/dev/null || true' EXIT
if ! has $lock && ! has requirements-dev.lock; then
    say "installing the pinned Python packages into .venv"
    install $lock &
    packages=$!
fi

# --- the kernel, and mica itself, editable -----------------------------------------------------------------------------
want=$({
    rustc --version
    .venv/bin/python -V
    pwd
    find native -name target -prune -o -type f -print | LC_ALL=C sort | xargs sha256sum
    sha256sum pyproject.toml
} | sha256sum)
if [ "$(cat .venv/mica-kernel.stamp 2>/dev/null)" != "$want" ] || ! ls src/mica/_native*.so >/dev/null 2>&1; then
    say "building the kernel in release mode (some minutes the first time)"
    PATH="$PWD/.venv/bin:$PATH" CARGO_TERM_PROGRESS_WHEN=never .venv/bin/python -m pip install --quiet \
        --disable-pip-version-check --no-deps --no-build-isolation --editable .
    echo "$want" >.venv/mica-kernel.stamp
fi
[ -z "$packages" ] || wait "$packages" || refuse "The Python packages of $lock cannot be installed: pip says why above."
packages=

# --- what only the tests need ------------------------------------------------------------------------------------------
if [ $tests = yes ]; then
    command -v mvn >/dev/null || apt maven ||
        refuse "The tests compare with delta-spark, whose jars come by Maven: install maven (mvn)."
    scripts/jars.sh
    cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 || apt rustfmt-web rust-web-clippy ||
        say "make lint will want rustfmt and clippy: install them beside cargo."
fi
mkdir -p .venv/share
dirname "$(command -v cargo)" >.venv/share/mica-cargo-bin
