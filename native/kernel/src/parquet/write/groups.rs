//! Rows to row groups, as the library's `ArrowWriter` cuts them (by rows and by encoded bytes), with checksums.

use std::io::Write;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::SchemaDescriptor;

use crate::parquet::write::checksum::Collector;

pub struct RowGroups<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    schema: SchemaRef,
    factory: ArrowRowGroupWriterFactory,
    collector: Collector,
    columns: Vec<ArrowColumnWriter>,
    /// In the row group being built.
    rows: usize,
    max_rows: usize,
    max_bytes: usize,
}

impl<W: Write + Send> RowGroups<W> {
    pub fn new(sink: W, schema: SchemaRef, file: &SchemaDescriptor, properties: WriterProperties) -> Result<Self> {
        let max_rows = properties.max_row_group_row_count().unwrap_or(usize::MAX);
        let max_bytes = properties.max_row_group_bytes().unwrap_or(usize::MAX);
        let writer = SerializedFileWriter::new(sink, file.root_schema_ptr(), Arc::new(properties))?;
        let collector = Collector::default();
        let factory = ArrowRowGroupWriterFactory::new(&writer, schema.clone());
        let factory = factory.with_page_store_factory(Arc::new(collector.clone()));
        Ok(RowGroups { writer, schema, factory, collector, columns: Vec::new(), rows: 0, max_rows, max_bytes })
    }

    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut at = 0;
        while at < batch.num_rows() {
            let mut taken = (batch.num_rows() - at).min(self.max_rows - self.rows);
            let bytes = self.in_progress_size();
            if let Some(row) = bytes.checked_div(self.rows) {
                // By the rows so far, how many more will fit.
                let fit = self.max_bytes.saturating_sub(bytes).checked_div(row).unwrap_or(taken);
                if fit == 0 {
                    self.flush()?;
                    continue;
                }
                taken = taken.min(fit);
            }
            self.encode(&batch.slice(at, taken))?;
            at += taken;
            if self.rows >= self.max_rows || self.in_progress_size() >= self.max_bytes {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn encode(&mut self, batch: &RecordBatch) -> Result<()> {
        if self.columns.is_empty() {
            self.columns = self.factory.create_column_writers(self.writer.flushed_row_groups().len())?;
        }
        self.rows += batch.num_rows();
        let mut columns = self.columns.iter_mut();
        for (field, array) in self.schema.fields().iter().zip(batch.columns()) {
            for leaf in compute_leaves(field, array)? {
                columns.next().ok_or_else(uneven)?.write(&leaf)?;
            }
        }
        Ok(())
    }

    /// Ends the row group being built.
    fn flush(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        self.rows = 0;
        let chunks = std::mem::take(&mut self.columns).into_iter().map(ArrowColumnWriter::close);
        let chunks = chunks.collect::<Result<Vec<_>>>()?;
        let pages = self.collector.take();
        if pages.len() != chunks.len() {
            return Err(uneven());
        }
        let mut group = self.writer.next_row_group()?;
        for (pages, chunk) in pages.into_iter().zip(chunks) {
            let (chunk, close) = pages.close(chunk.close().clone())?;
            group.append_column(&chunk, close)?;
        }
        group.close()?;
        Ok(())
    }

    /// Encoded bytes of the row group being built, about.
    pub fn in_progress_size(&self) -> usize {
        self.columns.iter().map(ArrowColumnWriter::get_estimated_total_bytes).sum()
    }

    pub fn bytes_written(&self) -> usize {
        self.writer.bytes_written()
    }

    pub fn inner_mut(&mut self) -> &mut W {
        self.writer.inner_mut()
    }

    pub fn finish(&mut self) -> Result<ParquetMetaData> {
        self.flush()?;
        self.writer.finish()
    }
}

fn uneven() -> ParquetError {
    ParquetError::General("the rows have other columns than the file".into())
}
