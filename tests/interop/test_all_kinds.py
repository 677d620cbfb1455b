"""Operations of all kinds on tables with all features: mica and delta-spark in turn, and a model of what comes out.

After each operation both readers must return the rows of the model. Where rows are tracked, they must return its ids: a
row that is copied keeps its id and version, one that is updated keeps its id, and a new one gets an id that no row had.
The model must be as true for what delta-spark does as for what mica does.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pyarrow as pa
import pytest

import mica
from mica.engines.spark import engine
from mica.errors import MicaError
from tests.support import CAMPAIGN
from tests.trial import Row, Trial

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNS, STEPS = (5, 200) if CAMPAIGN else (1, 10)

#: Assignments in SQL and in Python.
VALUES: list[tuple[dict[str, str], Callable[[Row], Row]]] = [
    ({"n": "{id} + 1"}, lambda r: {"n": r["id"] + 1}),
    ({"n": "CASE WHEN {n} IS NULL THEN 0 ELSE {n} + 2 END"}, lambda r: {"n": 0 if r["n"] is None else r["n"] + 2}),
    ({"p": "({p} + 1) % 3"}, lambda r: {"p": (r["p"] + 1) % 3}),
    ({"s": "concat('u', CAST({id} AS STRING))", "q": "9"}, lambda r: {"s": f"u{r['id']}", "q": 9}),
    ({"v": """parse_json('{{"a": 5, "s": "t5"}}')"""}, lambda _: {"v": {"a": 5, "s": "t5"}}),
    ({"n": "CAST(NULL AS INT)"}, lambda _: {"n": None}),
    ({"s": "{s}"}, lambda _: {}),
]


class Kinds(Trial):
    """What is done."""

    def step(self) -> None:
        kinds = dict.fromkeys(("append", "merge", "update", "delete"), 4) | {
            "optimize": 3, "zorder": 2, "reshred": 2, "erase": 2, "restore": 2, "vacuum": 1, "checkpoint": 1, "add": 1,
            "rename": 1, "drop": 1, "widen": 1, "overwrite": 1, "convert": 1, "repair": 1, "restats": 1, "toggle": 2,
            "violate": 1, "unvector": 1,
        }  # fmt: skip
        before = self.table.version
        feeds = self.on("delta.enableChangeDataFeed")
        while True:
            [kind] = self.rng.choices(list(kinds), list(kinds.values())) if self.state.rows else ["append"]
            ours = self.alone or self.maybe()
            session = self.spark if ours and self.maybe(0.2) else None
            self.told.append([before, kind, "mica" if ours else "delta-spark", session is not None])
            done = getattr(self, kind)(ours, session)
            if done is not False:
                break
            self.told.pop()
        table = self.table
        self.compare(table)
        self.states[table.version] = copy.deepcopy(self.state)
        if feeds and self.on("delta.enableChangeDataFeed") and table.version > before and kind != "unvector":
            self.compare_changes(table, before + 1)

    def append(self, ours: bool, session: SparkSession | None) -> None:
        rows = self.made(self.rng.choice([1, 30, 60]))
        if not ours:
            self.spark.sql(f"INSERT INTO {self.name} {self.as_sql(rows)}")
        elif session is not None and not self.added:
            frame = self.frame(rows)
            self.table.append(frame.toDF(*(self.state.names[slot] for slot in frame.columns)))
        else:
            self.table.append([self.named(row) for row in rows])
        self.put(rows)

    def overwrite(self, ours: bool, session: SparkSession | None) -> Any:
        if session is not None or self.maybe():
            return False
        rows, p = self.made(10), None
        if self.layout == "partitions" and self.maybe():
            p = self.rng.randrange(3)
            rows = [row | {"p": p} for row in rows]
        where = None if p is None else self.state.filled("{p} = @", p)
        self.tell(where)
        if ours:
            self.table.overwrite([self.named(row) for row in rows], where)
        elif where is None:
            self.spark.sql(f"INSERT OVERWRITE {self.name} {self.as_sql(rows)}")
        else:
            return False
        self.remove(lambda r: p is None or r["p"] == p)
        self.put(rows)
        return None

    def delete(self, ours: bool, session: SparkSession | None) -> None:
        where, holds = self.where()
        if ours:
            self.table.delete(where, spark=session)
        else:
            self.spark.sql(f"DELETE FROM {self.name} WHERE {where}")
        self.remove(holds)

    def update(self, ours: bool, session: SparkSession | None) -> None:
        where, holds = self.where()
        texts, values = self.rng.choice(VALUES)
        texts = {self.state.names[slot]: self.state.filled(text) for slot, text in texts.items()}
        self.tell(texts)
        if ours:
            self.table.update({f"`{name}`": text for name, text in texts.items()}, where, spark=session)
        else:
            shown = ", ".join(f"`{name}` = {text}" for name, text in texts.items())
            self.spark.sql(f"UPDATE {self.name} SET {shown} WHERE {where}")
        for key, row in self.state.rows.items():
            if holds(row):
                self.change(key, values(row))

    def merge(self, ours: bool, session: SparkSession | None) -> None:
        known = self.rng.sample(sorted(self.state.rows), min(8, len(self.state.rows)))
        first = self.fresh
        source = self.made(0, known) + self.made(5)
        source = [{slot: row[slot] for slot in ("id", "p", "n", "s", "x", "v")} for row in source]
        names = self.state.names
        sets = {f"`{names[slot]}`": f"s.{slot}" for slot in ("n", "v")}
        inserts = {f"`{names[slot]}`": f"s.{slot}" for slot in source[0]}
        deletes, alone = self.maybe(), self.maybe(0.3)
        self.tell(deletes, alone, [row["id"] for row in source])
        lone = self.state.filled("t.{id} % 10 = 3")
        both, new = self.maybe(), f"s.id % 5 <> 0 AND s.id >= {first}"
        on = f"t.`{names['id']}` = s.id" + (f" AND t.`{names['p']}` = s.p" if both else "")
        given = pa.table({slot: [row[slot] for row in source] for slot in source[0] if slot != "v"})
        given = given.append_column("v", mica.variant.from_python([row["v"] for row in source]))
        if ours:
            data = given if session is None else self.frame(given)
            merge = self.table.merge(data, on, source_alias="s", target_alias="t")
            if deletes:
                merge = merge.when_matched_delete("s.id % 3 = 0")
            merge = merge.when_matched_update(sets).when_not_matched_insert(inserts, new)
            if alone:
                merge = merge.when_not_matched_by_source_update({f"`{names['q']}`": "11"}, lone)
            few = -1 if self.maybe() else engine.FEW_ROWS  # a source of more rows is shuffled
            with patch.object(engine, "FEW_ROWS", few):
                merge.execute()
        else:
            self.frame(given).createOrReplaceTempView("all_kinds_source")
            shown = ", ".join(f"{name} = {text}" for name, text in sets.items())
            self.spark.sql(
                f"MERGE INTO {self.name} t USING all_kinds_source s ON {on} "
                + ("WHEN MATCHED AND s.id % 3 = 0 THEN DELETE " if deletes else "")
                + f"WHEN MATCHED THEN UPDATE SET {shown} WHEN NOT MATCHED AND {new} THEN INSERT "
                f"({', '.join(inserts)}) VALUES ({', '.join(inserts.values())})"
                + (f" WHEN NOT MATCHED BY SOURCE AND {lone} THEN UPDATE SET `{names['q']}` = 11" if alone else "")
            )
        matched = {row["id"] for row in source if row["id"] in self.state.rows
                   and (not both or self.state.rows[row["id"]]["p"] == row["p"])}  # fmt: skip
        for key in list(self.state.rows):
            if alone and key not in matched and key % 10 == 3:
                self.change(key, {"q": 11})
        for row in source:
            key = row["id"]
            if key in matched and deletes and key % 3 == 0:
                self.remove(lambda r, key=key: r["id"] == key)
            elif key in matched:
                self.change(key, {"n": row["n"], "v": row["v"]})
            elif key % 5 and key >= first:
                self.put([row])

    def optimize(self, ours: bool, session: SparkSession | None) -> None:
        if ours:
            self.table.optimize(spark=session)
        else:
            self.spark.sql(f"OPTIMIZE {self.name}")

    def zorder(self, ours: bool, session: SparkSession | None) -> Any:
        if self.layout == "clusters":
            return False
        by = [f"`{self.state.names[slot]}`" for slot in ("id", "n")]
        if ours:
            names = [self.state.names[slot] for slot in ("id", "n")]
            self.table.optimize(zorder_by=[*names, f"`{self.state.names['v']}`:a"], spark=session)
        else:
            self.spark.sql(f"OPTIMIZE {self.name} ZORDER BY ({', '.join(by)})")
        return None

    def reshred(self, ours: bool, session: SparkSession | None) -> Any:
        if not ours:
            return False
        schema = self.rng.choice([None, "STRUCT<a: INT>", "STRUCT<s: STRING, b: ARRAY<INT>>", "VARIANT"])
        self.tell(schema)
        self.table.reshred(schema if self.on("delta.enableVariantShredding") else None, spark=session)
        return None

    def erase(self, ours: bool, session: SparkSession | None) -> Any:
        if not ours:
            return False
        where, holds = self.where() if self.maybe() else (None, lambda _: True)
        self.table.erase(f"`{self.state.names['v']}`:s", where, spark=session)
        for key, row in self.state.rows.items():
            if holds(row) and "s" in row["v"]:
                self.change(key, {"v": {name: value for name, value in row["v"].items() if name != "s"}})
        return None

    def restore(self, ours: bool, session: SparkSession | None) -> Any:
        known = [version for version in self.states if version >= self.oldest]
        version = self.rng.choice(known[-4:])
        self.tell(version)
        if session is not None:
            return False
        if ours:
            self.table.restore(version=version)
        else:
            self.spark.sql(f"RESTORE TABLE {self.name} TO VERSION AS OF {version}")
        self.state = copy.deepcopy(self.states[version])
        return None

    def vacuum(self, ours: bool, session: SparkSession | None) -> Any:
        if not ours or session is not None:
            return False
        sharp = self.maybe()
        self.table.vacuum(0 if sharp else None, enforce_retention=False)
        if sharp:
            self.oldest = self.table.version
        return None

    def checkpoint(self, ours: bool, session: SparkSession | None) -> Any:
        if not ours or session is not None:
            return False
        self.table.checkpoint()
        return None

    def repair(self, ours: bool, session: SparkSession | None) -> Any:
        if not ours or session is not None:
            return False
        mica.repair(self.path)
        return None

    def restats(self, ours: bool, session: SparkSession | None) -> Any:
        if not ours:
            return False
        self.table.restats(spark=session)
        return None

    def convert(self, ours: bool, session: SparkSession | None) -> Any:
        if not ours:
            return False
        target = self.aside / f"converted{len(self.told)}"
        mica.convert_files(self.table, target, spark=session)
        assert self.read_by_mica(mica.Table.open(target))[0] == self.state.rows
        return None

    def add(self, ours: bool, session: SparkSession | None) -> Any:
        if session is not None or len(self.added) > 3:
            return False
        slot = f"c{len(self.told)}"
        if ours:
            self.table.add_columns(f"{slot} INT", first=self.maybe(0.3))
        else:
            self.spark.sql(f"ALTER TABLE {self.name} ADD COLUMNS ({slot} INT)")
        self.state.names[slot] = slot
        for row in self.state.rows.values():
            row[slot] = None
        return None

    def rename(self, ours: bool, session: SparkSession | None) -> Any:
        if session is not None or self.mapped == "none":
            return False
        slot = self.rng.choice(["s", "q", "x", "v", *self.added])
        new = f"{slot} {len(self.told)}" if self.maybe() else f"{slot}{len(self.told)}"
        self.tell(slot, new)
        if ours:
            self.table.rename_column(f"`{self.state.names[slot]}`", new)
        else:
            self.spark.sql(f"ALTER TABLE {self.name} RENAME COLUMN `{self.state.names[slot]}` TO `{new}`")
        self.state.names[slot] = new
        return None

    def drop(self, ours: bool, session: SparkSession | None) -> Any:
        if session is not None or self.mapped == "none" or not self.added:
            return False
        slot = self.rng.choice(self.added)
        if ours:
            self.table.drop_columns([f"`{self.state.names[slot]}`"])
        else:
            self.spark.sql(f"ALTER TABLE {self.name} DROP COLUMN `{self.state.names[slot]}`")
        del self.state.names[slot]
        for row in self.state.rows.values():
            del row[slot]
        return None

    def widen(self, ours: bool, session: SparkSession | None) -> Any:
        slot = self.rng.choice(["n", "q", *self.added])
        if session is not None or not self.has["wide"]:
            return False
        if ours:
            self.table.alter_column(f"`{self.state.names[slot]}`", type="BIGINT")
        else:
            self.spark.sql(f"ALTER TABLE {self.name} ALTER COLUMN `{self.state.names[slot]}` TYPE BIGINT")
        return None

    def toggle(self, ours: bool, session: SparkSession | None) -> Any:
        names = ["enableChangeDataFeed", "enableDeletionVectors", "enableVariantShredding", "enableRowTracking"]
        name = f"delta.{self.rng.choice(names)}"
        value = str(not self.on(name)).lower()
        self.tell(name, value)
        if session is not None or (name == "delta.enableRowTracking" and not self.state.rows):
            return False
        if ours:
            self.table.set_properties({name: value})
        else:
            self.spark.sql(f"ALTER TABLE {self.name} SET TBLPROPERTIES ('{name}' = '{value}')")
        if name == "delta.enableRowTracking":
            self.state.ids = {}  # those that the reader tells from now on
        return None

    def unvector(self, ours: bool, session: SparkSession | None) -> Any:
        """Drops a feature of readers, which rewrites files."""
        if not ours or session is not None or "deletionVectors" not in self.table.protocol.writer_features:
            return False
        self.table.drop_feature("deletionVectors")
        return None

    def violate(self, ours: bool, session: SparkSession | None) -> Any:
        """A row that the constraint refuses leaves the table as it was."""
        if session is not None or not self.has["check"]:
            return False
        before, rows = self.table.version, self.made(0, [-1])
        if ours:
            with pytest.raises(MicaError, match="positive"):
                self.table.append([self.named(row) for row in rows])
        else:
            with pytest.raises(Exception, match="CHECK constraint positive"):
                self.spark.sql(f"INSERT INTO {self.name} {self.as_sql(rows)}")
        assert self.table.version == before
        return None


@pytest.mark.slow
@pytest.mark.timeout(6 * 3600)
@pytest.mark.parametrize("number", range(RUNS))
def test_in_turn(delta_session: SparkSession, tmp_path: Path, rng: random.Random, number: int) -> None:
    trial = Kinds(delta_session, tmp_path, rng)
    try:
        for step in range(STEPS):
            trial.step()
            if step % 10 == 9:
                assert mica.check(trial.path).ok
    except BaseException:
        print(f"run {number}:", *trial.told, sep="\n  ")
        raise
