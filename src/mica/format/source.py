"""The data source `mica`: what Spark asks of it, by kind of read and write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from mica.engines.spark import hadoop
from mica.engines.spark.session import active
from mica.format import read, stream, write
from mica.format.brief import brief
from mica.format.options import Options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Makes `format("mica")` known to a session."""
    # Otherwise Spark refuses a source that takes filters.
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    # Spark looks for a source of this name in the active session, whichever it registers one for.
    with active(spark):
        hadoop.carry(spark)  # a registered source keeps the environment of that moment
        spark.dataSource.register(MicaSource)


class MicaSource(DataSource):
    """`spark.read.format("mica")`, `df.write.format("mica")`, and both as streams."""

    #: All columns, where Spark has asked for them: it keeps them with this object until a query starts.
    _loaded: StructType | None = None

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "mica"

    @brief
    def schema(self) -> StructType:
        """The columns of the table, or those that the options ask for."""
        options = Options.of(self.options)
        self._loaded = read.spark_schema(read.opened(options), options)
        return self._loaded

    @brief
    def reader(self, schema: StructType) -> DataSourceReader:
        """Rows in a batch."""
        options = Options.of(self.options)
        return (read.FilteredReader if options.flag("pushFilters") else read.Reader)(options, schema)

    @brief
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A DataFrame into the table."""
        options = Options.of(self.options)
        return write.BatchWriter(options, options.properties(self.options), schema, overwrite)

    @brief
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """The table as a stream."""
        return stream.StreamReader(Options.of(self.options), schema, self._loaded)

    @brief
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - as above
        """A stream into the table."""
        options = Options.of(self.options)
        return write.StreamWriter(options, options.properties(self.options), schema, overwrite)
