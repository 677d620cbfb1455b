//! Paths into a Variant: their steps and their text.

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Key(String),
    Index(usize),
}

/// A path as people read it: the column, then an RFC 9535 path.
pub fn path_text(column: &str, steps: &[Step]) -> String {
    let mut text = format!("{column}:$");
    for step in steps {
        match step {
            Step::Key(key) => text.push_str(&format!("[{}]", quoted(key))),
            Step::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}

/// A name as RFC 9535, section 2.7 writes it in a normalized path.
pub fn quoted(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 2);
    text.push('\'');
    for c in name.chars() {
        match c {
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\'' => text.push_str("\\'"),
            '\\' => text.push_str("\\\\"),
            c if c < ' ' => text.push_str(&format!("\\u{:04x}", c as u32)),
            c => text.push(c),
        }
    }
    text.push('\'');
    text
}
