//! The kernel's tests as one program: what they share, and what they make of the library's generic code, is compiled and
//! linked once. `budget` and `fuzz` are programs of their own, for they measure their process.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

mod architecture;
mod byte_arrays;
mod casts;
mod edit;
mod encode;
mod hostile;
mod hostile_columns;
mod infer;
mod integers;
mod json_reader;
mod pages;
mod rows;
mod shapes;
mod shred;
mod sparse;
mod structure;
mod templates;
mod texts;
mod values;
mod write;

/// A file that no program names would not run.
#[test]
fn every_file_is_tested() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    let programs = include_str!("../Cargo.toml");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(module) = name.strip_suffix(".rs") else { continue };
        let named = include_str!("main.rs").contains(&format!("\nmod {module};\n"));
        assert!(named || programs.contains(&format!("\"tests/{name}\"")), "{name}");
    }
}
