"""Reports that are also HTML pages: in a file of their own, or in a notebook.

The rule: a report gives its title and the inside of its page; the rest is here. HTML is made only when it is shown.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mica.pictures.page import Html


class Paged(ABC):
    """A report with a page."""

    __slots__ = ()

    @abstractmethod
    def title(self) -> str:
        """The page's title."""

    @abstractmethod
    def _page(self) -> Html:
        """The inside of the page."""

    def to_html(self) -> str:
        """The report as a page of HTML that needs no network."""
        from mica.pictures.page import document

        return document(self.title(), self._page())

    def _repr_html_(self) -> str:
        return self._page()
