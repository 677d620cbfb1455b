#!/usr/bin/env bash
# Fetches the jars of the tests and benchmarks, once, into .venv/share/mica-jars: delta-spark, and an older ICU4J than
# Spark's, for tables that engines of two versions write.
# Maven is asked because it knows the machine's mirrors.
set -euo pipefail
cd "$(dirname "$0")/.."
delta=4.4.0
to=${MICA_JARS:-$PWD/.venv/share/mica-jars}
artifacts="io.delta:delta-spark_4.2_2.13:$delta io.delta:delta-storage:$delta io.delta:delta-kernel-api:$delta
    io.delta:delta-kernel-defaults:$delta io.delta:delta-kernel-unitycatalog:$delta com.ibm.icu:icu4j:77.1"
missing=""
for artifact in $artifacts; do
    IFS=: read -r _ name version <<<"$artifact"
    [ -s "$to/$name-$version.jar" ] || missing="$missing $artifact"
done
[ -n "$missing" ] || exit 0
command -v mvn >/dev/null || {
    echo "The tests compare with delta-spark, whose jars come by Maven: install maven (mvn) and run again." >&2
    exit 1
}
mkdir -p "$to"
repository=$(mvn -B -q help:evaluate -Dexpression=settings.localRepository -DforceStdout 2>/dev/null | tail -n 1)
[ -d "$repository" ] || repository=$HOME/.m2/repository
for artifact in $missing; do
    IFS=: read -r group name version <<<"$artifact"
    echo "fetching $artifact"
    mvn -B -q dependency:get "-Dartifact=$artifact" -Dtransitive=false
    cp "$repository/${group//.//}/$name/$version/$name-$version.jar" "$to/$name-$version.jar.part"
    mv "$to/$name-$version.jar.part" "$to/$name-$version.jar"
done
