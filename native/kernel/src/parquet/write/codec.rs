//! How pages are compressed (Parquet, Compression.md).

use std::io::Write;

use parquet::basic::Compression;
use parquet::errors::{ParquetError, Result};

/// A compressor that serves one page after the other.
pub enum Codec {
    None,
    Snappy(Box<snap::raw::Encoder>),
    Gzip(flate2::Compression),
    Brotli(u32),
    Lz4Raw,
    Zstd(zstd::bulk::Compressor<'static>),
}

impl Codec {
    /// The codecs that are written. LZO has no library, and the first form of LZ4 is deprecated.
    pub fn new(compression: Compression) -> Result<Self> {
        Ok(match compression {
            Compression::UNCOMPRESSED => Codec::None,
            Compression::SNAPPY => Codec::Snappy(Box::new(snap::raw::Encoder::new())),
            Compression::GZIP(level) => Codec::Gzip(flate2::Compression::new(level.compression_level())),
            Compression::BROTLI(level) => Codec::Brotli(level.compression_level()),
            Compression::LZ4_RAW => Codec::Lz4Raw,
            Compression::ZSTD(level) => Codec::Zstd(zstd::bulk::Compressor::new(level.compression_level())?),
            other => return Err(ParquetError::NYI(format!("pages are not compressed with {other}"))),
        })
    }

    /// The page compressed, in `room` where it takes any.
    pub fn compress<'b>(&mut self, page: &'b [u8], room: &'b mut Vec<u8>) -> Result<&'b [u8]> {
        match self {
            Codec::None => return Ok(page),
            Codec::Snappy(encoder) => {
                // What is behind the page is left from others: to clear it takes time.
                room.resize(room.len().max(snap::raw::max_compress_len(page.len())), 0);
                let length = encoder.compress(page, room).map_err(other)?;
                return Ok(room.get(..length).unwrap_or(&[]));
            }
            Codec::Gzip(level) => {
                room.clear();
                let mut encoder = flate2::write::GzEncoder::new(&mut *room, *level);
                encoder.write_all(page)?;
                encoder.finish()?;
            }
            Codec::Brotli(level) => {
                room.clear();
                mica_brotli::compress(page, *level, room)?;
            }
            Codec::Lz4Raw => {
                room.resize(room.len().max(lz4_flex::block::get_maximum_output_size(page.len())), 0);
                let length = lz4_flex::block::compress_into(page, room).map_err(other)?;
                return Ok(room.get(..length).unwrap_or(&[]));
            }
            Codec::Zstd(compressor) => {
                room.clear();
                room.reserve(zstd::zstd_safe::compress_bound(page.len()));
                compressor.compress_to_buffer(page, room)?;
            }
        }
        Ok(room)
    }
}

fn other(error: impl std::error::Error + Send + Sync + 'static) -> ParquetError {
    ParquetError::External(Box::new(error))
}
