#!/usr/bin/env bash
# Fetches delta-spark for the tests and benchmarks, once, into .venv/share/mica-jars.
# Maven is asked because it knows the machine's mirrors.
set -euo pipefail
cd "$(dirname "$0")/.."
version=4.4.0
to=${MICA_JARS:-$PWD/.venv/share/mica-jars}
artifacts="delta-spark_4.2_2.13 delta-storage delta-kernel-api delta-kernel-defaults delta-kernel-unitycatalog"
missing=""
for a in $artifacts; do [ -s "$to/$a-$version.jar" ] || missing="$missing $a"; done
[ -n "$missing" ] || exit 0
command -v mvn >/dev/null || {
    echo "The tests compare with delta-spark, whose jars come by Maven: install maven (mvn) and run again." >&2
    exit 1
}
mkdir -p "$to"
repository=$(mvn -B -q help:evaluate -Dexpression=settings.localRepository -DforceStdout 2>/dev/null | tail -n 1)
[ -d "$repository" ] || repository=$HOME/.m2/repository
for a in $missing; do
    echo "fetching io.delta:$a:$version"
    mvn -B -q dependency:get "-Dartifact=io.delta:$a:$version" -Dtransitive=false
    cp "$repository/io/delta/$a/$version/$a-$version.jar" "$to/$a-$version.jar.part"
    mv "$to/$a-$version.jar.part" "$to/$a-$version.jar"
done
