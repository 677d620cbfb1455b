//! What is asked of a file or of a batch, answered: leaf columns become values.
//!
//! - `items`: what is asked for, and the answer out of decoded columns
//! - `asked`: what may be asked of a file; `scan`, `merge`, `kept`: its rows, filtered late
//! - `texts`: what a predicate mostly asks first, judged here
//! - `together`: several small files as if they were one
//! - `batch`: the same on an Arrow batch

mod asked;
pub mod batch;
pub mod items;
mod kept;
mod merge;
pub mod scan;
pub mod texts;
pub mod together;
