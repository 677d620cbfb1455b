#!/usr/bin/env bash
# Tries a wheel where nothing of this machine is: in a root of Debian that debootstrap makes, with its Python alone, in
# process (PySpark, which is large, is left out). Needs root and debootstrap.
#   scripts/try_wheel.sh [WHEEL]
set -euo pipefail
cd "$(dirname "$0")/.."
wheel=${1:-$(ls dist/mica-*manylinux*"$(uname -m)".whl | tail -n 1)}
root=$PWD/.bench/root
mirror=$(apt-get indextargets --format '$(SITE)' | grep -v -i security | head -n 1)
if [ ! -x $root/usr/bin/python3 ]; then
    rm -rf "$root"
    mkdir -p .bench
    debootstrap --variant=minbase --include=python3-venv,ca-certificates bookworm $root "$mirror" >/dev/null
fi
cp /etc/resolv.conf $root/etc/resolv.conf
[ ! -f /etc/pip.conf ] || cp /etc/pip.conf $root/etc/pip.conf
cp /etc/ssl/certs/ca-certificates.crt $root/etc/ssl/certs/ca-certificates.crt
cp "$wheel" $root/tmp/
# Nothing of this environment but the way to the registry: pip finds what a person would.
inside() { env -u PIP_FIND_LINKS -u PYTHONPATH "$(command -v chroot)" "$root" /usr/bin/env HOME=/root PATH=/usr/bin:/bin "$@"; }
inside python3 -m venv --clear /venv
inside /venv/bin/python -m pip install --quiet --disable-pip-version-check numpy pyarrow obstore orjson typer rich
inside /venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps "/tmp/$(basename "$wheel")"
inside /venv/bin/mica --version
inside /venv/bin/mica demo /tmp/shown --no-spark --events 5000
inside /venv/bin/mica check /tmp/shown/table
echo "tried $(basename "$wheel") in Debian $(cat $root/etc/debian_version), Python $(inside /venv/bin/python -V | cut -d' ' -f2)"
