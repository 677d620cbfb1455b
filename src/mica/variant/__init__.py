"""Variants: paths into them, shredding schemas, and Arrow arrays of them."""

from mica.variant.encode import from_python
from mica.variant.path import VariantPath
from mica.variant.shredding import Limits, ShreddingSchema
from mica.variant.values import from_json, infer, to_json, to_python

__all__ = ["Limits", "ShreddingSchema", "VariantPath", "from_json", "from_python", "infer", "to_json", "to_python"]
