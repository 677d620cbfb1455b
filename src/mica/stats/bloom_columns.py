"""Which leaf columns get a bloom filter.

The rule: the paths in the property `mica.bloomFilter.paths` (`v:a.b, s.v:c['d e']`) that lead through objects only. A
file in which the path is not shredded to one type gets no filter for it. Without the property there are no filters:
they cost about ten bits per distinct value.

Source: Parquet "VariantShredding" for the columns' names.
"""

from __future__ import annotations

from collections.abc import Mapping

from mica.properties import BLOOM_PATHS
from mica.schema.types import StructType, variant_columns
from mica.stats.columns import physical_names
from mica.stats.named import named_paths
from mica.variant.path import VariantPath


def bloom_columns(schema: StructType, configuration: Mapping[str, str]) -> list[list[str]]:
    """Returns the Parquet paths of the columns: `["v", "typed_value", "a", "typed_value"]`."""
    variants = {tuple(n.lower() for n in at): at for at in variant_columns(schema)}
    found = []
    for column, normalized in named_paths(BLOOM_PATHS, configuration) or ():
        path = VariantPath.parse_normalized(normalized)
        if column in variants and not path.has_index:
            steps = [name for step in path.steps for name in (str(step), "typed_value")]
            found.append([*physical_names(schema, variants[column]), "typed_value", *steps])
    return found
