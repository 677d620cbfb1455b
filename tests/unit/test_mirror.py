"""`tests/unit` mirrors `src/mica`: a module's rule is proved in the file of its name, or this table says where."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import ROOT

PACKAGE, UNIT = ROOT / "src" / "mica", ROOT / "tests" / "unit"

#: Modules (or rooms) without a file of tests of their own, and why: → the tests that prove them.
ELSEWHERE: dict[str, dict[str, str]] = {
    "Proved by running the command.": {"cli/": "tests/cli"},
    "Needs a JVM.": {
        "engines/spark/": "tests/spark",
        "query/around.py": "tests/spark/test_sql_around.py",
        "query/viewed.py": "tests/spark/test_sql_around.py",
        "query/conditions.py": "tests/property/test_sql_spark.py",
        "query/connect.py": "tests/spark/test_connect.py",
        "query/enabled.py": "tests/spark/test_sql.py",
        "query/explained.py": "tests/spark/test_sql.py",
        "query/here.py": "tests/property/test_sql_spark.py",
        "query/insert.py": "tests/spark/test_sql_statements.py",
        "query/inserts.py": "tests/spark/test_sql_around.py",
        "query/file_names.py": "tests/spark/test_connect.py",
        "query/located.py": "tests/spark/test_connect.py",
        "query/narrowed.py": "tests/spark/test_sql.py",
        "query/scripts.py": "tests/spark/test_sql_scripts.py",
        "query/select.py": "tests/property/test_sql_spark.py",
        "query/settings.py": "tests/spark/test_sql_settings.py",
        "query/subqueries.py": "tests/spark/test_subqueries.py",
        "query/variables.py": "tests/spark/test_sql_settings.py",
        "format/source.py": "tests/spark/test_format.py",
        "collation/trust.py": "tests/property/test_collations_spark.py",
        "write/by_spark.py": "tests/spark/test_by_spark.py",
        "write/change_by_spark.py": "tests/spark/test_by_spark.py",
        "write/merge_by_spark.py": "tests/spark/test_by_spark.py",
    },
    "A part of one rule, which is proved as a whole.": {
        "write/row_changes.py": "tests/unit/write/test_change.py",
        "write/running_merge.py": "tests/unit/write/test_merge.py",
        "tasks/each_file.py": "tests/unit/tasks/test_at_once.py",
        "query/row_statements.py": "tests/unit/query/test_statements.py",
        "query/statement_parts.py": "tests/unit/query/test_statements.py",
        "pictures/paged.py": "tests/unit/scan/test_pictured.py",
        "engines/progress.py": "tests/cli/test_progress.py",
        "checking/columns_fit.py": "tests/unit/checking/test_check_kinds.py",
        "checking/bounds_hold.py": "tests/unit/checking/test_check.py",
        "checking/doctor.py": "tests/cli/test_doctor.py",
        "checking/erased.py": "tests/unit/write/test_erase.py",
        "checking/quoted.py": "tests/unit/write/test_erase.py",
        "checking/inspect.py": "tests/cli/test_cli.py",
        "checking/shredding_rules.py": "tests/unit/checking/test_suggestions.py",
        "checking/statistics.py": "tests/unit/checking/test_check.py",
        "checking/survey.py": "tests/unit/checking/test_drift.py",
        "collation/ordering.py": "tests/unit/skipping/test_collated.py",
        "expressions/bind_calls.py": "tests/unit/expressions/test_functions.py",
        "expressions/bind_casts.py": "tests/unit/expressions/test_bind.py",
        "expressions/bind_comparisons.py": "tests/unit/expressions/test_bind.py",
        "expressions/bind_leaves.py": "tests/unit/expressions/test_bind.py",
        "expressions/binder.py": "tests/unit/expressions/test_bind.py",
        "expressions/calls.py": "tests/unit/expressions/test_functions.py",
        "expressions/compare.py": "tests/unit/expressions/test_evaluate.py",
        "expressions/conditionals.py": "tests/unit/expressions/test_functions.py",
        "schema/interval_types.py": "tests/unit/expressions/test_intervals.py",
        "expressions/plain_values.py": "tests/unit/expressions/test_casts.py",
        "expressions/interval_casts.py": "tests/unit/expressions/test_intervals.py",
        "expressions/interval_literals.py": "tests/unit/expressions/test_intervals.py",
        "expressions/constants.py": "tests/unit/expressions/test_parse.py",
        "expressions/cursor.py": "tests/unit/expressions/test_parse.py",
        "expressions/parse_paths.py": "tests/unit/expressions/test_parse.py",
        "expressions/digests.py": "tests/unit/expressions/test_functions.py",
        "expressions/generic.py": "tests/unit/expressions/test_functions.py",
        "expressions/lookup.py": "tests/unit/expressions/test_functions.py",
        "expressions/nested.py": "tests/unit/expressions/test_functions.py",
        "expressions/nested_casts.py": "tests/unit/expressions/test_casts.py",
        "expressions/regexps.py": "tests/property/test_functions_spark.py",
        "expressions/rounding.py": "tests/property/test_functions_spark.py",
        "expressions/signatures.py": "tests/unit/expressions/test_functions.py",
        "expressions/time_patterns.py": "tests/property/test_functions_spark.py",
        "expressions/truncation.py": "tests/property/test_expressions_spark.py",
        "expressions/xxhash.py": "tests/unit/expressions/test_functions.py",
        "expressions/pairs.py": "tests/unit/expressions/test_functions.py",
        "expressions/strings.py": "tests/unit/expressions/test_functions.py",
        "expressions/texts.py": "tests/unit/expressions/test_functions.py",
        "expressions/times.py": "tests/unit/expressions/test_functions.py",
        "expressions/tokens.py": "tests/unit/expressions/test_parse.py",
        "log/after_cleanup.py": "tests/unit/test_stale_handles.py",
        "log/file_lines.py": "tests/unit/log/test_transaction.py",
        "log/added.py": "tests/unit/log/test_transaction.py",
        "log/checkpoint_rows.py": "tests/unit/log/test_checkpoint_writer.py",
        "log/column_mapping.py": "tests/conformance/test_delta_tables_rows.py",
        "log/feed_columns.py": "tests/unit/log/test_feed.py",
        "log/feed_commits.py": "tests/unit/log/test_feed.py",
        "log/file_columns.py": "tests/unit/log/test_snapshot.py",
        "log/fingerprint.py": "tests/unit/test_stale_handles.py",
        "log/folders.py": "tests/unit/test_parquet.py",
        "log/history.py": "tests/unit/log/test_transaction.py",
        "log/json_lines.py": "tests/unit/log/test_replay.py",
        "log/opened.py": "tests/unit/checking/test_check.py",
        "log/tombstones.py": "tests/unit/maintain/test_vacuum.py",
        "skipping/file_plan.py": "tests/unit/skipping/test_plan.py",
        "readers/arrow_filters.py": "tests/property/test_readers.py",
        "readers/polars_filters.py": "tests/property/test_readers.py",
        "readers/source.py": "tests/unit/readers/test_dataset.py",
        "readers/terms.py": "tests/property/test_readers.py",
        "scan/along.py": "tests/unit/scan/test_pictured.py",
        "scan/files.py": "tests/unit/test_parquet.py",
        "skipping/judge.py": "tests/unit/skipping/test_plan.py",
        "stats/bloom_columns.py": "tests/unit/stats/test_named.py",
        "stats/columns.py": "tests/unit/stats/test_render.py",
        "stats/variant.py": "tests/unit/stats/test_render.py",
        "maintain/alter.py": "tests/unit/table/test_rows.py",
        "tasks/change.py": "tests/unit/write/test_change.py",
        "write/bytewise.py": "tests/spark/test_bytewise.py",
        "collation/alike.py": "tests/spark/test_bytewise.py",
        "tasks/changed_rows.py": "tests/unit/write/test_change.py",
        "tasks/erase.py": "tests/unit/write/test_erase.py",
        "tasks/facts.py": "tests/unit/tasks/test_write.py",
        "tasks/file_errors.py": "tests/unit/tasks/test_file.py",
        "tasks/skipper.py": "tests/unit/tasks/test_file.py",
        "tasks/costs.py": "tests/unit/scan/test_explanation.py",
        "maintain/constraints.py": "tests/unit/write/test_rules.py",
        "tasks/physical.py": "tests/unit/maintain/test_columns.py",
        "tasks/bad_lines.py": "tests/unit/write/test_ingest.py",
        "tasks/ingest.py": "tests/unit/write/test_ingest.py",
        "tasks/leaf_values.py": "tests/unit/write/test_ingest.py",
        "tasks/merge.py": "tests/unit/write/test_merge.py",
        "tasks/move.py": "tests/unit/maintain/test_convert.py",
        "tasks/not_json.py": "tests/unit/write/test_ingest.py",
        "tasks/read.py": "tests/unit/scan/test_scan.py",
        "tasks/rewrite.py": "tests/unit/maintain/test_repair.py",
        "tasks/reshred.py": "tests/unit/maintain/test_reshred.py",
        "tasks/row_errors.py": "tests/unit/write/test_ingest.py",
        "tasks/blocked_merge.py": "tests/spark/test_merge.py",
        "tasks/shuffled_merge.py": "tests/property/test_merge_model.py",
        "tasks/strings.py": "tests/unit/maintain/test_restats.py",
        "tasks/variant_bounds.py": "tests/unit/maintain/test_restats.py",
        "variant/kernel/batches.py": "tests/unit/kernel",
        "variant/kernel/json_input.py": "tests/unit/write/test_ingest.py",
        "variant/kernel/reader.py": "tests/unit/kernel/test_reading.py",
        "variant/kernel/request.py": "tests/unit/kernel/test_reading.py",
        "variant/kernel/writer.py": "tests/unit/tasks/test_write.py",
        "variant/plain.py": "tests/unit/write/test_given.py",
        "table/shaped.py": "tests/unit/table/test_rows.py",
        "write/bare.py": "tests/unit/test_parquet.py",
        "write/collated.py": "tests/unit/maintain/test_restats.py",
        "write/commit.py": "tests/unit/write/test_target.py",
        "write/computed.py": "tests/unit/write/test_ingest.py",
        "write/facts.py": "tests/unit/write/test_flow.py",
        "write/ingest_plan.py": "tests/unit/write/test_ingest.py",
        "write/merge_clauses.py": "tests/unit/write/test_merge.py",
        "write/merge_jobs.py": "tests/property/test_merge_model.py",
        "write/merge_source.py": "tests/unit/write/test_merge.py",
        "write/rows.py": "tests/unit/write/test_given.py",
    },
    "Says what is, and decides nothing.": {
        "checking/report.py": "tests/unit/checking/test_check.py",
        "expressions/bound_expr.py": "tests/unit/expressions/test_bind.py",
        "expressions/tree.py": "tests/unit/expressions/test_parse.py",
        "scan/source.py": "tests/unit/scan/test_table.py",
        "schema/literals.py": "tests/unit/expressions/test_parse.py",
    },
}
HELD_BY = {module: tests for modules in ELSEWHERE.values() for module, tests in modules.items()}
MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if path.name[:2] != "__")


def _own(module: str) -> Path:
    path = Path(module)
    return UNIT / path.parent / f"test_{path.name}"


@pytest.mark.parametrize("module", MODULES)
def test_each_module_has_its_tests_or_says_where_they_are(module: str) -> None:
    listed = [key for key in HELD_BY if module == key or (key.endswith("/") and module.startswith(key))]
    assert _own(module).exists() is not bool(listed), f"write {_own(module).relative_to(ROOT)}, or list the module"


def test_nothing_is_listed_that_is_not_there() -> None:
    assert [key for key in HELD_BY if not (PACKAGE / key).exists()] == []
    assert [tests for tests in HELD_BY.values() if not (ROOT / tests).exists()] == []
