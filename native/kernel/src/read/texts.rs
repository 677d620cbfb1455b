//! Evaluates the equality tests on texts that a filter begins with. Most predicates begin with one, and Python takes
//! ten times as long for a batch.

use arrow_array::cast::AsArray;
use arrow_array::{Array, BooleanArray, RecordBatch};
use arrow_buffer::BooleanBuffer;

use crate::item::Item;
use crate::values::coded::CodedTexts;

/// What is asked of texts, before all else that is asked of the filter.
#[derive(Debug, Clone, Default)]
pub struct Texts {
    asked: Vec<Wanted>,
    /// Whether nothing else is asked.
    all: bool,
}

/// An item of the filter by its number, and the texts of which it must be one, in their order.
#[derive(Debug, Clone)]
struct Wanted {
    item: usize,
    texts: Vec<String>,
}

impl Texts {
    pub fn new(asked: Vec<(usize, Vec<String>)>, all: bool) -> Self {
        let wanted = |(item, mut texts): (usize, Vec<String>)| {
            texts.sort_unstable();
            Wanted { item, texts }
        };
        Texts { asked: asked.into_iter().map(wanted).collect(), all }
    }

    /// The mask of rows that pass, where their texts decide: nothing else is asked, or no row has the texts. The answers
    /// are those to the filter's items.
    pub fn judge(&self, filter: &[Item], answers: &RecordBatch) -> Option<BooleanArray> {
        let mut found: Option<BooleanBuffer> = None;
        for wanted in &self.asked {
            let rows = wanted.rows(&filter.get(wanted.item)?.name, answers)?;
            found = Some(match found {
                Some(before) => &before & &rows,
                None => rows,
            });
        }
        let mask = BooleanArray::new(found?, None);
        (self.all || !mask.has_true()).then_some(mask)
    }
}

impl Wanted {
    /// The rows that have one of the texts. `None` where a judge must see them: a cast failed, which may be an error, or
    /// the column holds no texts.
    fn rows(&self, name: &str, answers: &RecordBatch) -> Option<BooleanBuffer> {
        let failed = answers.column_by_name(&format!("{name}!")).and_then(|mask| mask.as_boolean_opt());
        if failed.is_some_and(BooleanArray::has_true) {
            return None;
        }
        let values = answers.column_by_name(name)?;
        let (rows, nulls) = match CodedTexts::open(values) {
            Some(coded) => (self.codes(&coded), coded.codes.nulls().cloned()),
            None => {
                let texts = values.as_string_opt::<i32>()?;
                (BooleanBuffer::collect_bool(texts.len(), |row| self.has(texts.value(row))), texts.nulls().cloned())
            }
        };
        Some(match nulls {
            Some(nulls) => &rows & nulls.inner(),
            None => rows,
        })
    }

    /// Each text of the dictionary is compared once.
    fn codes(&self, coded: &CodedTexts) -> BooleanBuffer {
        let has: Vec<bool> = (0..coded.texts.len()).map(|code| self.has(coded.texts.value(code))).collect();
        let codes = coded.codes.values();
        BooleanBuffer::collect_bool(codes.len(), |row| has.get(codes[row] as usize).is_some_and(|&has| has))
    }

    fn has(&self, text: &str) -> bool {
        self.texts.binary_search_by(|one| one.as_str().cmp(text)).is_ok()
    }
}
