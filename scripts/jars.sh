#!/usr/bin/env bash
# Fetches jars, once. Those of the tests and benchmarks go into .venv/share/mica-jars: delta-spark, and an older ICU4J than
# Spark's, for tables that engines of two versions write. `jars.sh differential` puts Iceberg and parquet-java into
# .bench/java.
# Maven is asked because it knows the machine's mirrors.
set -euo pipefail
cd "$(dirname "$0")/.."
delta=4.4.0
to=${MICA_JARS:-$PWD/.venv/share/mica-jars}
artifacts="io.delta:delta-spark_4.2_2.13:$delta io.delta:delta-storage:$delta io.delta:delta-kernel-api:$delta
    io.delta:delta-kernel-defaults:$delta io.delta:delta-kernel-unitycatalog:$delta com.ibm.icu:icu4j:77.1"
if [ "${1:-}" = differential ]; then
    to=$PWD/.bench/java
    artifacts="com.github.ben-manes.caffeine:caffeine:2.9.3"
    for name in api bundled-guava common core data parquet; do
        artifacts="$artifacts org.apache.iceberg:iceberg-$name:1.11.0"
    done
    for name in avro column common encoding format-structures hadoop jackson variant; do
        artifacts="$artifacts org.apache.parquet:parquet-$name:1.17.1"
    done
fi
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
