//! Pages that are changed on their way from a file to the library's decoders.

use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::Result;

/// The pages of a column chunk, each as `change` makes it of the stored one.
pub struct Changed<F> {
    pub stored: Box<dyn PageReader>,
    pub change: F,
}

impl<F: FnMut(Page) -> Result<Page> + Send> Iterator for Changed<F> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl<F: FnMut(Page) -> Result<Page> + Send> PageReader for Changed<F> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        self.stored.get_next_page()?.map(&mut self.change).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.stored.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.stored.skip_next_page()
    }

    fn supports_deferred_dictionary(&self) -> bool {
        self.stored.supports_deferred_dictionary()
    }

    fn take_deferred_dictionary(&mut self) -> Result<Option<Page>> {
        self.stored.take_deferred_dictionary()?.map(&mut self.change).transpose()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.stored.at_record_boundary()
    }
}
