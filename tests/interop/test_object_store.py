"""A table on `s3://` and on `az://`: real servers, real requests through obstore, several writers at once.

Azure's server is Azurite, Microsoft's own, which `make azurite` installs. S3's is moto's. It looks whether an object is
there and then puts it, so with threads two writers of one name could both win; its PUTs are therefore served one at a
time, and the first test proves each server before any other leans on it.
"""

from __future__ import annotations

import base64
import hmac
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import mica
from mica.cli.events import lines
from mica.engines.spark import reader
from mica.scan import files
from mica.storage import AlreadyExistsError, Storage
from mica.storage.remote import RemoteStorage
from tests.spark.readers import is_native

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("moto", reason="the S3 server of these tests is moto's")

WRITERS = 6


def _s3() -> Iterator[dict[str, str]]:
    from moto.moto_server.werkzeug_app import create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        def log(self, *_: Any) -> None:
            pass

    app = create_backend_app("s3")
    one_at_a_time = threading.Lock()

    def serialised(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        if environ["REQUEST_METHOD"] != "PUT":
            return app(environ, start_response)
        with one_at_a_time:
            return [b"".join(app(environ, start_response))]

    running = make_server("127.0.0.1", 0, serialised, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    yield {
        "endpoint": f"http://127.0.0.1:{running.server_port}",
        "region": "us-east-1",
        "access_key_id": "an-id",
        "secret_access_key": "a-secret",
        "allow_http": "true",
    }
    running.shutdown()
    thread.join()
    running.server_close()


AZURITE = Path(__file__).parents[2] / ".bench/azurite/node_modules/.bin/azurite-blob"
#: The account of every emulator of Azure, which its documentation gives.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def _azure() -> Iterator[dict[str, str]]:
    if not AZURITE.exists():
        pytest.skip("Azurite is not installed: make azurite")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = subprocess.Popen(
        [
            AZURITE,
            "--inMemoryPersistence",
            "--disableTelemetry",
            "--skipApiVersionCheck",
            "--silent",
            f"--blobPort={port}",
        ]
    )
    try:
        for _ in range(600):
            with socket.socket() as asked:
                if asked.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
        yield {"account_name": ACCOUNT, "account_key": KEY, "endpoint": endpoint, "allow_http": "true"}
    finally:
        running.kill()
        running.wait()


SERVERS = {"s3": _s3, "azure": _azure}
ON_S3 = pytest.mark.parametrize("server", ["s3"], indirect=True)


@pytest.fixture(scope="module", params=[name for name in SERVERS if name != "azure" or AZURITE.exists()])
def server(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """A running server, as storage_options."""
    yield from SERVERS[request.param]()


@pytest.fixture
def bucket(server: dict[str, str], numbers: Iterator[int]) -> str:
    name, headers, query = f"bucket-{next(numbers)}", {}, ""
    if "account_key" in server:
        query, headers = "?restype=container", _signed(name)
    asked = urllib.request.Request(f"{server['endpoint']}/{name}{query}", b"", headers, method="PUT")
    urllib.request.urlopen(asked, timeout=30).close()
    return f"{'az' if query else 's3'}://{name}"


def _signed(container: str) -> dict[str, str]:
    """Headers of the request that makes a container; obstore makes none. Source: Azure, "Authorize with Shared Key"."""
    ours = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    kind = "application/octet-stream"
    text = f"PUT\n\n\n\n\n{kind}\n\n\n\n\n\n\n" + "".join(f"{name}:{value}\n" for name, value in ours.items())
    text += f"/{ACCOUNT}/{ACCOUNT}/{container}\nrestype:container"
    sign = base64.b64encode(hmac.digest(base64.b64decode(KEY), text.encode(), "sha256")).decode()
    return {**ours, "Content-Type": kind, "Authorization": f"SharedKey {ACCOUNT}:{sign}"}


@pytest.fixture(scope="module")
def numbers() -> Iterator[int]:
    return count()


def _secret(server: dict[str, str]) -> str:
    return server.get("account_key") or server["secret_access_key"]


def _at_once(work: Callable[[int], Any]) -> list[Any]:
    """What `work` gave, or raised, in threads that begin together."""
    ready = threading.Barrier(WRITERS)

    def run(number: int) -> Any:
        ready.wait()
        try:
            return work(number)
        except mica.MicaError as e:
            return e

    with ThreadPoolExecutor(WRITERS) as threads:
        return list(threads.map(run, range(WRITERS)))


def test_the_server_lets_one_writer_of_a_name_win(server: dict[str, str], bucket: str) -> None:
    homes = [Storage.open(f"{bucket}/t", server) for _ in range(WRITERS)]
    for round_ in range(10):
        found = _at_once(lambda n, name=f"{round_}.json": homes[n].put_if_absent(name, b"%d" % n))  # type: ignore[misc]
        winners = [n for n, answer in enumerate(found) if answer is None]
        assert len(winners) == 1
        assert all(isinstance(answer, AlreadyExistsError) for answer in found if answer is not None)
        assert homes[0].read(f"{round_}.json") == b"%d" % winners[0]


def test_a_table_is_made_written_and_read(server: dict[str, str], bucket: str) -> None:
    mica.Table.create(f"{bucket}/t", "id BIGINT, v VARIANT", partition_by=["id"], storage_options=server)
    table = mica.Table.open(f"{bucket}/t", storage_options=server)
    for number in (1, 2):
        table.append(pa.table({"id": [number] * 3, "v": mica.variant.from_json([f'{{"n":{number}}}'] * 3)}))
    assert table.version == 2
    again = mica.Table.open(f"{bucket}/t", storage_options=server)
    scan = again.scan("v:n::int = 2")
    assert scan.to_pandas().to_dict("records") == [{"id": 2, "v": {"n": 2}}] * 3
    files = scan.explain().to_dict()["files"]
    assert (files["total"], files["kept"], len(files["dropped"])) == (2, 1, 1)
    again.overwrite(pa.table({"id": [1], "v": mica.variant.from_json(["7"])}), where="id = 1")
    assert sorted(again.scan(columns=["id"]).to_arrow()["id"].to_pylist()) == [1, 2, 2, 2]
    assert mica.Table.open(f"{bucket}/t", version=1, storage_options=server).scan().count() == 3
    assert again.history().column("version").to_pylist() == [3, 2, 1, 0]


def test_json_in_a_bucket_becomes_a_table_there(server: dict[str, str], bucket: str) -> None:
    home = Storage.open(bucket, server)
    home.put("in/a.ndjson", lines(0, 3_000, seed=1))
    home.put("in/b.ndjson", lines(3_000, 3_000, seed=1))
    report = mica.ingest_json(
        f"{bucket}/in/*.ndjson", f"{bucket}/t", sort_by=["v:time_us::bigint"], target_file_size="200KB",
        storage_options=server,
    )  # fmt: skip
    assert (report.rows, report.input_files) == (6_000, 2)
    assert report.files > 1
    table = mica.Table.open(f"{bucket}/t", storage_options=server)
    assert table.scan().count() == 6_000
    first = table.scan(columns={"t": "v:time_us::bigint"}).to_arrow()["t"].to_pylist()
    hit = table.scan(f"v:time_us::bigint <= {sorted(first)[10]}")
    assert hit.count() == 11
    assert hit.explain().to_dict()["files"]["kept"] == 1


def test_writers_that_race_all_get_in_once_each(server: dict[str, str], bucket: str) -> None:
    mica.Table.create(f"{bucket}/t", "n INT", storage_options=server)
    tables = [mica.Table.open(f"{bucket}/t", storage_options=server) for _ in range(WRITERS)]
    found = _at_once(lambda n: tables[n].append(pa.table({"n": pa.array([n], pa.int32())})))
    assert sorted(commit.version for commit in found) == list(range(1, WRITERS + 1))
    table = mica.Table.open(f"{bucket}/t", storage_options=server)
    assert sorted(table.scan().to_arrow()["n"].to_pylist()) == list(range(WRITERS))


def test_of_those_who_create_one_table_one_does(server: dict[str, str], bucket: str) -> None:
    found = _at_once(lambda n: mica.Table.create(f"{bucket}/t", f"c{n} INT", storage_options=server))
    made = [answer for answer in found if isinstance(answer, mica.Table)]
    assert len(made) == 1
    assert {answer.code for answer in found if isinstance(answer, mica.MicaError)} == {"TABLE_EXISTS"}
    assert mica.Table.open(f"{bucket}/t", storage_options=server).schema == made[0].schema


def test_a_file_that_is_gone_and_a_secret_that_stays(server: dict[str, str], bucket: str) -> None:
    table = mica.Table.create(f"{bucket}/t", "n INT", storage_options=server)
    table.append(pa.table({"n": pa.array([1], pa.int32())}))
    home = Storage.open(f"{bucket}/t", server)
    (path,) = [entry.path for entry in home.list() if entry.path.endswith(".parquet")]
    home.delete(path)
    with pytest.raises(mica.StorageError) as caught:
        table.scan().to_arrow()
    assert caught.value.code == "NOT_FOUND"
    assert f"{bucket}/t/{path} is gone: version 1 of the table" in caught.value.message
    assert _secret(server) not in repr(table) + str(caught.value) + repr(home)
    with pytest.raises(mica.UserError, match="not a Delta table"):
        mica.Table.open(f"{bucket}/other", storage_options=server)


def test_spark_workers_read_and_write_a_bucket_by_mica_alone(
    spark: SparkSession, server: dict[str, str], bucket: str
) -> None:
    """No Hadoop connector is there: bytes go through obstore in the workers."""
    table = mica.Table.create(f"{bucket}/t", "id BIGINT, v VARIANT", storage_options=server)
    table.append(spark.range(100).selectExpr("id", "parse_json(concat('{\"n\":', id, '}')) AS v"))
    frame = table.scan("v:n::int >= 90").to_df(spark)
    assert sorted(row.id for row in frame.collect()) == list(range(90, 100))
    assert _secret(server) not in frame._jdf.queryExecution().toString()


@pytest.fixture
def settings(spark: SparkSession, server: dict[str, str]) -> Iterator[dict[str, str]]:
    """Hadoop's settings of the server, which the running session has."""
    made = {
        "fs.s3a.endpoint": server["endpoint"],
        "fs.s3a.endpoint.region": server["region"],
        "fs.s3a.access.key": server["access_key_id"],
        "fs.s3a.secret.key": server["secret_access_key"],
        "fs.s3a.path.style.access": "true",
    }
    for name, value in made.items():
        spark.conf.set(name, value)
    yield made
    for name in made:
        spark.conf.unset(name)


@pytest.mark.slow
@ON_S3
def test_what_the_session_is_told_opens_a_table_without_options(
    spark: SparkSession, server: dict[str, str], settings: dict[str, str], bucket: str
) -> None:
    place = bucket.replace("s3://", "s3a://") + "/t"
    mica.Table.create(place, "n INT").append(spark.range(5).selectExpr("CAST(id AS INT) AS n"))
    assert mica.Table.open(place, storage_options=server).scan().count() == 5
    assert mica.sql(f"SELECT sum(n) AS s FROM delta.`{place}`", spark).collect() == [(10,)]
    with ThreadPoolExecutor(1) as another:  # which has no active session
        assert another.submit(lambda: mica.Table.open(place).scan("n > 2").count()).result() == 2
    mica.enable(spark)  # whose sources are planned elsewhere
    try:
        assert spark.read.format("mica").load(place).count() == 5
    finally:
        mica.disable(spark)
        spark.sparkContext.environment.pop("MICA_STORES")
    for name in settings:
        spark.conf.unset(name)
    assert Storage.open(place).options == {}, "Hadoop's defaults are nobody's settings"
    context: Any = spark.sparkContext
    hadoop = context._jsc.hadoopConfiguration()
    try:
        for name, value in settings.items():
            hadoop.set(name, value)
        assert mica.Table.open(place).scan().count() == 5
    finally:
        for name in settings:
            hadoop.unset(name)


@ON_S3
@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("partition_by", [[], ["day"]])
def test_spark_reads_large_files_of_a_store_itself(
    spark: SparkSession,
    settings: dict[str, str],
    bucket: str,
    partition_by: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So that a later query prunes columns and paths. Spark's connector here is Hadoop's for a disk under another
    scheme, over a copy of the bucket; that of S3 has 700 MB."""
    place, name = bucket.replace("s3://", "s3a://") + "/t", bucket.removeprefix("s3://")
    table = mica.Table.create(place, "day INT, id BIGINT, v VARIANT", partition_by=partition_by)
    made = spark.range(9).selectExpr("int(id % 2) AS day", "id", "parse_json(concat('{\"n\":', id, '}')) AS v")
    table.append(made)
    wanted = [(f"{i}", f"{i % 2}") for i in range(9)]

    def found() -> tuple[bool, list[tuple[Any, ...]]]:
        frame = mica.Table.open(place).to_df(spark)
        rows = frame.selectExpr("string(variant_get(v, '$.n', 'bigint'))", "string(day)").collect()
        return is_native(frame), sorted(map(tuple, rows))

    stored = Storage.open(place)
    for entry in stored.list():
        copy = tmp_path / "t" / entry.path
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(stored.read(entry.path))
    assert found() == (False, wanted), "small files"
    monkeypatch.setattr(reader, "REMOTE_BYTES", 0)
    assert found() == (False, wanted), "no connector"
    connector = {
        "fs.s3a.impl": "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme",
        "fs.s3a.impl.disable.cache": "true",
        f"fs.viewfs.mounttable.{name}.link./t": tmp_path.as_uri() + "/t",
    }
    for setting, value in connector.items():
        spark.conf.set(setting, value)
    try:
        assert found() == (True, wanted)
        assert not is_native(table.scan(columns=["id"]).to_df(spark)), "fewer requests"
        spark.conf.set("fs.s3a.secret.key", "another")
        assert not is_native(table.to_df(spark)), "the table was opened with other settings"
        spark.conf.unset(f"fs.viewfs.mounttable.{name}.link./t")
        assert not is_native(mica.Table.open(place).to_df(spark)), "no such file"
    finally:
        for setting in connector:
            spark.conf.unset(setting)


@ON_S3
def test_a_profile_opens_a_table(
    server: dict[str, str], bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "credentials"
    file.write_text(
        f"[work]\naws_access_key_id={server['access_key_id']}\naws_secret_access_key={server['secret_access_key']}\n"
    )
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    options = {name: server[name] for name in ("endpoint", "region", "allow_http")} | {"profile": "work"}
    mica.Table.create(f"{bucket}/t", "n INT", storage_options=options).append(pa.table({"n": [1]}))
    assert mica.Table.open(f"{bucket}/t", storage_options=options).scan().count() == 1


@pytest.mark.slow
@ON_S3
def test_a_registered_name_keeps_the_options_of_its_store(
    spark: SparkSession, server: dict[str, str], bucket: str, tmp_path: Path
) -> None:
    mica.Table.create(f"{bucket}/t", "n INT", storage_options=server)
    mica.register("stored", f"{bucket}/t", storage_options=server)
    mica.enable(spark)
    try:
        spark.sql("INSERT INTO stored VALUES (1), (2)")
        rows = spark.range(3, 5).selectExpr("CAST(id AS INT) AS n")
        rows.write.mode("append").saveAsTable("stored")
        rows.writeTo("stored").append()
        rows.write.insertInto("stored")
        frame = spark.read.table("stored")
        assert _secret(server) not in frame._jdf.queryExecution().toString()
        assert sorted(row.n for row in frame.collect()) == [1, 2, 3, 3, 3, 4, 4, 4]
        assert spark.sql("SELECT count(*) FROM stored").collect() == [(8,)]
        stream = spark.readStream.table("stored").writeStream.option("checkpointLocation", str(tmp_path / "c"))
        stream.trigger(availableNow=True).toTable("stored", outputMode="append").awaitTermination()
        assert spark.sql("SELECT count(*) FROM stored").collect() == [(16,)]
        spark.sql("DELETE FROM stored WHERE n > 1")
        assert mica.Table.open(f"{bucket}/t", storage_options=server).scan().count() == 2
        spark.sql(f"CREATE TABLE delta.`{bucket}/copy` SHALLOW CLONE stored")
        assert mica.Table.open(f"{bucket}/copy", storage_options=server).scan().count() == 2
        mica.Table.create(f"{bucket}/u", "n INT", storage_options=server)
        spark.sql(f"ALTER TABLE stored SET LOCATION '{bucket}/u'")
        assert spark.sql("SELECT count(*) FROM stored").collect() == [(0,)]
    finally:
        mica.disable(spark)
    with pytest.raises(mica.UserError, match="a Table has its own"):
        mica.register("stored", mica.Table.open(f"{bucket}/t", storage_options=server), storage_options=server)


@pytest.mark.parametrize("server", ["azure"], indirect=True)
def test_every_spelling_of_azure_opens_the_table(server: dict[str, str], bucket: str) -> None:
    mica.Table.create(f"{bucket}/t", "n INT", storage_options=server).append(pa.table({"n": [1]}))
    container = bucket.removeprefix("az://")
    there = {"endpoint": server["endpoint"], "allow_http": "true"}
    for options in (
        {**there, "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": KEY},
        {**there, f"fs.azure.account.key.{ACCOUNT}.dfs.core.windows.net": KEY},
    ):
        for url in (f"{bucket}/t", f"abfss://{container}@{ACCOUNT}.dfs.core.windows.net/t", f"azure://{container}/t"):
            assert mica.Table.open(url, storage_options=options).scan().count() == 1


@ON_S3
def test_every_spelling_of_the_options_opens_the_table(
    server: dict[str, str], bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mica.Table.create(f"{bucket}/t", "n INT", storage_options=server).append(pa.table({"n": [1]}))
    upper = {"AWS_ENDPOINT_URL": server["endpoint"], "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true"}
    keys = {"AWS_ACCESS_KEY_ID": "an-id", "AWS_SECRET_ACCESS_KEY": "a-secret"}
    hadoop = {
        "fs.s3a.endpoint": server["endpoint"].removeprefix("http://"),
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.access.key": "an-id",
        "fs.s3a.secret.key": "a-secret",
        "fs.s3a.endpoint.region": "us-east-1",
    }
    for spelled in (upper | keys, {n.lower(): v for n, v in (upper | keys).items()}, hadoop, {**upper, **server}):
        assert mica.Table.open(f"{bucket}/t", storage_options=spelled).scan().count() == 1
    for name, value in (upper | keys).items():
        monkeypatch.setenv(name, value)
    assert mica.Table.open(f"{bucket}/t").scan().count() == 1


def test_the_end_of_a_file_is_fetched_once(
    server: dict[str, str], bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends: list[str] = []
    read = RemoteStorage.read_ranges

    def counted(self: RemoteStorage, rel: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        ends.extend(self.path(rel) for _, end in ranges if end == self.size(rel) and rel.endswith(".parquet"))
        return read(self, rel, ranges)

    monkeypatch.setattr(files, "BRIEFLY", 600.0)  # however slow the machine is
    rows = pa.table({"n": range(50_000)})
    mica.write_parquet(rows, f"{bucket}/a.parquet", storage_options=server)
    table = mica.Table.create(f"{bucket}/t", "n BIGINT", storage_options=server)
    table.append(rows)
    monkeypatch.setattr(RemoteStorage, "read_ranges", counted)
    bare = mica.read_parquet(f"{bucket}/a.parquet", where="n >= 49000", storage_options=server)
    scan = table.scan(where="n >= 49000")
    for planned in (bare, scan):
        assert planned.explain().to_dict()["rows"]["total"] == 50_000
        assert planned.explain(analyze=True).to_dict()["analyze"]["rows"] == 1000
        assert planned.count() == planned.to_arrow().num_rows == 1000
    assert len(ends) == len(set(ends)) == 2


def test_patterns_and_folders_in_a_bucket_are_read_as_on_a_disk(server: dict[str, str], bucket: str) -> None:
    for name in ("f/a.parquet", "f/b.parquet", "f/d/c.parquet"):
        mica.write_parquet(pa.table({"n": [1]}), f"{bucket}/{name}", storage_options=server)
    for pattern, rows in {"f/*.parquet": 2, "f/**/*.parquet": 3, "f/[ab].parquet": 2, "f": 3, "f/?/*": 1}.items():
        assert mica.read_parquet(f"{bucket}/{pattern}", storage_options=server).count() == rows
    with pytest.raises(mica.UserError) as caught:
        mica.write_parquet(pa.table({"n": [1]}), f"{bucket}/f", storage_options=server)
    assert caught.value.code == "FILE_EXISTS"
    mica.Table.create(f"{bucket}/t", "n INT", storage_options=server).append(pa.table({"n": [1]}))
    assert mica.read_parquet(f"{bucket}/t", storage_options=server).count() == 1
    for taken in (f"{bucket}/t/*.parquet", f"{bucket}/**/*.parquet"):
        with pytest.raises(mica.UserError) as caught:
            mica.read_parquet(taken, storage_options=server)
        assert caught.value.code == "DELTA_TABLE"


def test_inputs_that_are_none_get_a_way_out_that_a_bucket_has(
    server: dict[str, str], bucket: str, tmp_path: Path
) -> None:
    Storage.open(bucket, server).put("in 1.json", '{"a":1}'.encode("utf-16"))
    with pytest.raises(mica.UserError) as caught:
        mica.ingest_json(f"{bucket}/*", tmp_path / "t", storage_options=server)
    assert caught.value.hint == (
        "Copy it to a disk and pipe it in: iconv -f UTF-16 -t UTF-8 'in 1.json' | mica ingest - TABLE"
    )
    for whole in (bucket, f"{bucket}/"):  # of the first it said that 's3:/' names no bucket
        with pytest.raises(mica.StorageError) as told:
            mica.ingest_json(whole, tmp_path / "t", storage_options=server)
        assert (told.value.code, told.value.hint) == ("IS_A_DIRECTORY", f"Write {bucket}/*.")
