//! Texts and clocks as the JVM has them: what Spark prints, reads and replaces.
//!
//! - `utf8`: whether bytes are text, and those that are not, as Java's decoder repairs them
//! - `java`: numbers, dates and times as Java spells them
//! - `z85`: bytes as text
//! - `zone`: time zones, of a database of our own

pub mod java;
pub mod utf8;
pub mod z85;
pub mod zone;
