"""A folder of NDJSON files as a stream into a table: the same files, and as many of them at each trigger, for all.

delta-spark by its documented way (`readStream`, `parse_json`, `writeStream`), by the faster of two sources: text with
`parse_json`, and JSON with `singleVariantColumn`. mica by `stream_json`, in process and on Spark, and by `writeStream`
with `format("mica")`, whose writer parses the texts of a VARIANT column itself.
"""

from __future__ import annotations

import itertools
from pathlib import Path

from benchmarks.run import Run, thing

#: Files in the folder, and of a batch.
FILES, TRIGGER = 50, 10


def run(run: Run) -> None:
    """Rows per second of the whole stream, its start included: what is there is read, and the stream ends."""
    source = str(_landing(run))
    request = {"source": source, "files": TRIGGER}
    ways = {
        "delta text": ("delta", "text"), "delta json": ("delta", "json"), "mica local": ("mica", "local"),
        "mica spark": ("mica", "spark"), "mica format": ("mica", "format"), "mica parse_json": ("mica", "parse_json"),
    }  # fmt: skip
    wanted = run.systems("delta", "mica")
    targets = {
        label: run.target(f"stream-{label.replace(' ', '-')}") for label, (peer, _) in ways.items() if peer in wanted
    }
    things = {
        label: thing(ways[label][0], "streamed", target=target, way=ways[label][1], **request)
        for label, target in targets.items()
    }
    measures = run.measure(f"a stream of {run.count:,} events in {FILES} files, {TRIGGER} at each trigger", things)
    for label, measure in measures.items():
        run.console.print(f"{label}: {run.count / measure.warm:,.0f} rows per second")
    checked = {label: run.peer(things[label].peer).ask("check", target=targets[label]).found for label in measures}
    run.same("stream", checked)
    theirs = min((measures[n] for n in measures if n.startswith("delta")), key=lambda m: m.warm, default=None)
    for label in ("mica local", "mica spark", "mica format"):
        run.faster(measures.get(label), theirs, 2, "a stream")
    run.stop("delta")
    _parse(run)
    run.stop()


def _parse(run: Run) -> None:
    """One session, the same texts: `parse_json` of Spark and of mica, the Variants to nobody."""
    source = str(run.events())
    things = {f"{by}'s parse_json": thing("mica", "parsed", source=source, by=by) for by in ("spark", "mica")}
    measures = run.measure(f"parse_json of {run.count:,} texts", things)
    if len(measures) == 2:
        run.faster(measures["mica's parse_json"], measures["spark's parse_json"], 1, "parse_json")


def _landing(run: Run) -> Path:
    """The events, cut into files of as many lines each."""
    folder = run.folder / "data" / f"landing-{run.count}-{FILES}"
    if not folder.exists():
        made = folder.with_name(f"{folder.name}.part")
        made.mkdir(exist_ok=True)
        with run.events().open("rb") as lines:
            for number in range(FILES):
                with (made / f"{number:03}.json").open("wb") as file:
                    file.writelines(itertools.islice(lines, -(-run.count // FILES)))
        made.rename(folder)
    return folder
