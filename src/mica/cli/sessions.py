"""`--master` and `--conf`: where the session of `--spark` runs, and its settings.

The rule: every command that may begin a session takes both, and each of them asks for the session as `--spark` does.
"""

from __future__ import annotations

import functools
import inspect
import logging
import sys
import warnings
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mica.cli.console import pairs
from mica.cli.kept_back import kept_back, reason
from mica.errors import UserError
from mica.records import dataclass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Master = Annotated[
    str | None,
    typer.Option("--master", metavar="URL", help="Spark's master, such as local[4] or spark://host:7077."),
]
_Conf = Annotated[
    list[str] | None, typer.Option("--conf", metavar="NAME=VALUE", help="A setting of the Spark session. Repeatable.")
]

#: The parameters that mean `--spark`.
_SPARK = ("on_spark", "spark")


@dataclass(frozen=True)
class _Asked:
    """What the command line asked for."""

    master: str | None = None
    conf: Sequence[str] = ()


_ASKED: ContextVar[_Asked] = ContextVar("asked", default=_Asked())  # noqa: B039 - it is frozen


def with_session(run: Callable[..., None]) -> Callable[..., None]:
    """The command with `--master` and `--conf` after its `--spark`, or at its end."""
    signature = inspect.signature(run, eval_str=True)
    known = list(signature.parameters.values())

    @functools.wraps(run)
    def ran(*args: Any, master: str | None = None, conf: list[str] | None = None, **kwargs: Any) -> None:
        _ASKED.set(_Asked(master, conf or ()))
        if master or conf:
            kwargs |= dict.fromkeys(signature.parameters.keys() & _SPARK, True)
        run(*args, **kwargs)

    more = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=kind)
        for name, kind in (("master", _Master), ("conf", _Conf))
    ]
    place = next((at + 1 for at, one in enumerate(known) if one.name in _SPARK), len(known))
    ran.__signature__ = signature.replace(parameters=[*known[:place], *more, *known[place:]])  # type: ignore[attr-defined]
    # typer would look up texts of annotations in this module.
    ran.__annotations__ = {one.name: one.annotation for one in (*known, *more)}
    return ran


def spark_session(**settings: str) -> SparkSession:
    """The session that the command asked for, by default an embedded one with these settings. What Spark logs is shown
    with `--debug` only.

    Errors: those of `mica.session`; of one that could not be started, with the reason that its log gives.
    """
    from mica.engines.spark.session import SQL_LOGGER, is_connect, session

    asked = _ASKED.get()
    master, conf = asked.master or "local[*]", settings | pairs(asked.conf, "--conf")
    if "--debug" in sys.argv:
        return session(master, **conf)
    # PySpark prints each error of a text as JSON, beside raising it, and warns of every pandas that is newer than it.
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    logging.getLogger(SQL_LOGGER).setLevel(logging.CRITICAL + 1)
    with kept_back() as lines:
        try:
            spark = session(master, **conf)
        except UserError as e:
            told = reason(lines())
            if e.code == "SPARK_NOT_STARTED" and told is not None:
                raise UserError(e.code, f"Spark could not be started: {told}", hint=e.hint) from e
            raise
        if not is_connect(spark):
            spark.sparkContext.setLogLevel("OFF")
    return spark
