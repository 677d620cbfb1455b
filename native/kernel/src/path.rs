//! Paths into a Variant: their steps, their text, and the levels of a shredded column that they lead through.

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Key(String),
    Index(usize),
}

/// A level of a shredded column, in a file's schema or over arrays.
pub trait Shredded: Copy {
    /// The level of a field of the object that is shredded here.
    fn field(self, key: &str) -> Option<Self>;
    /// The level of the elements of the array that is shredded here.
    fn element(self) -> Option<Self>;
}

/// The levels that a path leads through: the root, and one for each step that leads to a shredded level. One more than
/// there are steps: all of the path is shredded. Otherwise the rest of it is in the residual of the last level.
pub fn levels<L: Shredded>(root: L, steps: &[Step]) -> Vec<L> {
    let mut levels = vec![root];
    let mut at = root;
    for step in steps {
        let next = match step {
            Step::Key(key) => at.field(key),
            Step::Index(_) => at.element(),
        };
        let Some(next) = next else { break };
        levels.push(next);
        at = next;
    }
    levels
}

/// A path as people read it: the column, then an RFC 9535 path.
pub fn path_text(column: &str, steps: &[Step]) -> String {
    let mut text = format!("{column}:$");
    for step in steps {
        match step {
            Step::Key(key) => push_key(&mut text, key),
            Step::Index(index) => push_index(&mut text, *index),
        }
    }
    text
}

/// Appends the step to a field, as RFC 9535, section 2.7 writes it in a normalized path.
pub fn push_key(path: &mut String, key: &str) {
    path.push_str(&format!("[{}]", quoted(key)));
}

/// Appends the step to an element.
pub fn push_index(path: &mut String, index: usize) {
    path.push_str(&format!("[{index}]"));
}

fn quoted(name: &str) -> String {
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
