"""The one place that turns results into text: the result on stdout, all else on stderr."""

import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import field
from itertools import chain, islice
from typing import Any, TextIO, TypeVar

from azguard.cli.output import json_form, terminal
from azguard.cli.output.json_form import to_json_form
from azguard.cli.output.stream import HINT, build_output_failed
from azguard.errors import OutputFailed
from azguard.frozen import frozen
from azguard.wire import listeners

T = TypeVar("T")
# So many results are kept at once, and so many say how wide the columns of a table are.
CHUNK = 1000
# Of the second line of a message.
_INDENT = 2


@frozen
class Output:
    """How this run answers: the format, the query, and who is looking."""

    format: str
    query: str | None = None
    quiet: bool = False
    is_verbose: bool = False
    #: Whether the format was asked for, or a query: then a difference is part of a result.
    is_chosen: bool = False
    #: The command that answers, such as ``blob put``, where one line says what it did; None where all fields are shown.
    summarizes: str | None = None
    #: Whether the result is coloured, and whether messages are.
    color: bool = False
    colors_messages: bool = False
    progress: bool = False
    #: Whether a result is one of many in a stream: a line in JSON, an item in YAML.
    in_stream: bool = False
    #: What this run has warned of once.
    warned: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, shared: Mapping[str, Any], environ: Mapping[str, str], command: str = "") -> "Output":
        """Return how the shared options of a command say that it answers."""
        is_watched = terminal.is_terminal(sys.stdout)
        chosen = shared.get("output") or ("table" if is_watched else "json")
        quiet = bool(shared.get("quiet"))
        is_verbose = bool(shared.get("verbose") or shared.get("debug"))
        wants_all = shared.get("output") or shared.get("query") or is_verbose
        return cls(
            format=chosen,
            query=shared.get("query"),
            quiet=quiet,
            is_verbose=is_verbose,
            is_chosen=bool(shared.get("output") or shared.get("query")),
            summarizes=command if is_watched and not wants_all else None,
            color=terminal.is_colored(sys.stdout, shared, environ),
            colors_messages=terminal.is_colored(sys.stderr, shared, environ),
            progress=terminal.is_terminal(sys.stderr) and not quiet and not shared.get("no_progress"),
        )

    def show(self, result: object, alone: str | None = None) -> None:
        """Print one result; ``alone`` is the field that TSV shows without the others, unless --query chooses.

        Raises:
            OutputFailed: it tells of a write, and its reader has gone; the write is applied.
        """
        if not _is_of_write(result):
            self._show(result, alone)
            return
        try:
            self._show(result, alone)
            self.flush()
        except BrokenPipeError as error:
            raise build_output_failed(error) from None

    def answer(self, result: object, status: int) -> int:
        """Print a result, and return the exit status that is part of the answer."""
        if not status:
            self.show(result)
            return status
        # The status tells how it went, even if the rest cannot be printed.
        self._show(result)
        return status

    def _show(self, result: object, alone: str | None = None) -> None:
        if self.format != "none":
            value = to_json_form(result)
            alone = alone if self.format == "tsv" and not self.query else None
            with _refuse_too_deep():
                picked = value[alone] if alone else self.pick(value)
                self._tell_if_unmatched(value, picked)
                self._print(picked, result)

    def _print(self, value: Any, result: object) -> None:
        if self.format == "json":
            _line(json_form.to_json(value, margin=None if self.in_stream else "\n"))
        elif self.format == "yaml":
            sys.stdout.write(json_form.to_yaml([value] if self.in_stream else value))
        elif self.format == "tsv":
            for row in value if isinstance(value, list) else [value]:
                _line(json_form.to_tsv(row))
        elif not self._summarize(value, result):
            from azguard.cli.output import rendering

            rendering.show(value, rendering.of(result), color=self.color)

    def _summarize(self, value: Any, result: object) -> bool:
        """Print a result in one line, and return whether that is possible and wanted."""
        from azguard.cli.output import summaries

        wanted = self.summarizes is not None and isinstance(value, dict)
        before = getattr(result, "replaced_length", None)
        line = summaries.summarize(value, str(self.summarizes), before) if wanted else None
        if line is not None:
            _line(summaries.show(line, color=self.color, stream=sys.stdout))
        return line is not None

    def show_each(self, results: Iterable[object], *, counts: bool = True) -> None:
        """Print many results as they come, so that memory stays constant.

        A table is as wide as its first results need. YAML, and a query that needs all results, wait for the last one.
        ``counts`` has a terminal show how many there are, where it does not show them.
        """
        if counts:
            results = self.count(results)
        if self.format == "none":
            for _ in results:
                pass
        elif self.query is not None or self.format in ("yaml", "table"):
            self._show_chunks(iter(results))
        elif self.format == "tsv":
            for result in results:
                _line(json_form.to_tsv(to_json_form(result)))
        else:
            json_form.write_json_array(to_json_form(result) for result in results)

    def _show_chunks(self, results: Iterator[object]) -> None:
        # Elsewhere than on a terminal all results are counted.
        take = self.gather if terminal.is_terminal(sys.stdout) else list
        if not self._streams():
            self.show(take(results))
            return
        first = take(islice(results, CHUNK))
        if len(first) < CHUNK:
            self.show(first)
            return
        with _refuse_too_deep():
            chunks = self._pick_chunks(chain([first], iter(lambda: list(islice(results, CHUNK)), [])))
            if self.format == "table":
                from azguard.cli.output import rendering

                rendering.show_chunks(chunks, rendering.of(first), color=self.color)
            elif self.format == "json":
                json_form.write_json_array(chain.from_iterable(chunks))
            else:
                for row in chain.from_iterable(chunks):
                    _line(json_form.to_tsv(row))

    def gather(self, results: Iterable[T], unit: str = "results") -> list[T]:
        """Return all results; a terminal shows meanwhile how many there are."""
        return list(self._count(results, unit))

    def count(self, results: Iterable[T], unit: str = "results") -> Iterator[T]:
        """Yield all results; a terminal shows meanwhile how many there are, unless they are printed on it."""
        return iter(results) if terminal.is_terminal(sys.stdout) else self._count(results, unit)

    def _count(self, results: Iterable[T], unit: str) -> Iterator[T]:
        with self.progress_bar("read", unit=unit) as progress:
            for number, each in enumerate(results, 1):
                progress.at(number)
                yield each

    def _streams(self) -> bool:
        """Return whether each result can be printed as it comes: a query may make it no row of a table."""
        if self.query is None:
            return self.format == "table"
        return self.format in ("json", "tsv") and json_form.picks_lines(self.query)

    def _pick_chunks(self, chunks: Iterable[list[object]]) -> Iterator[list[Any]]:
        """Yield the values that are picked from each chunk of results."""
        is_found, value = False, None
        for chunk in chunks:
            value = to_json_form(chunk)
            picked = self.pick(value)
            is_found = is_found or bool(picked)
            yield picked
        self._tell_if_unmatched(value, is_found or None)

    def show_picked(self, values: list[Any], sample: object) -> None:
        """Print some of many results as they come, each picked already: JSON in a line each, and a table of them.

        ``sample`` is a result of their type.
        """
        if self.format in ("yaml", "table"):
            if values:
                self._print(values, [sample])
        elif self.format != "none":
            for each in values:
                _line(json_form.to_json(each) if self.format == "json" else json_form.to_tsv(each))
        self.flush()

    def print_line(self, text: str) -> None:
        """Print one line of the result for people, as it comes."""
        _line(text)
        self.flush()

    def shows_whole(self, result: object) -> bool:
        """Return whether all of a result is printed: with ``--query`` or ``-o none`` it is not."""
        value = to_json_form(result)
        return self.format != "none" and self.pick(value) is value

    def pick(self, value: Any) -> Any:
        """Return the value that --query picks from a plain value; without a query, the value itself."""
        return json_form.pick(self.query, value)

    def _tell_if_unmatched(self, value: Any, picked: Any) -> None:
        """Tell a person that --query found nothing because of a name that the result does not have."""
        if self.query is not None and picked in (None, []) and value:
            unknown = json_form.find_unknown(self.query, value)
            if unknown is not None:
                self.info(f"--query matches nothing: the result has no {unknown}")

    def flush(self) -> None:
        sys.stdout.flush()

    def json_lines(self, records: Iterable[Mapping[str, object]]) -> None:
        """Print one JSON object per line, whatever the format: what another program reads back."""
        for record in records:
            _line(json_form.to_json(record))

    def pass_on(self, chunk: bytes) -> None:
        """Print on stderr the output of a command that is not the result."""
        try:
            sys.stderr.flush()
            sys.stderr.buffer.write(chunk)
            sys.stderr.buffer.flush()
        except (OSError, ValueError):
            pass  # The reader of stderr has gone; the exit status still tells.

    def show_diff(self, diff: str) -> None:
        """Print a unified diff as it is, coloured where colours are wanted."""
        shown = terminal.paint_diff(diff) if self.color else diff
        sys.stdout.write(shown if not diff or diff.endswith("\n") else f"{shown}\n")

    def show_preview(self, result: object, diff: str, without: str) -> None:
        """Print the changes that a write would make: as a diff, or inside the result if a format was asked for.

        ``without`` is the message for people if nothing would change.
        """
        if self.is_chosen:
            self.show(result)
        elif diff:
            self.show_diff(diff)
        else:
            self.info(without)

    def info(self, text: str) -> None:
        """Print progress or a hint for people on stderr; ``--quiet`` silences it."""
        if not self.quiet:
            _to(sys.stderr, text, color=self.colors_messages)

    def say(self, text: str) -> None:
        """Print progress during a wait: on a terminal in lines that are no longer than it is wide."""
        if terminal.is_terminal(sys.stderr):
            text = "\n  ".join(terminal.wrap(text, terminal.width(sys.stderr) - _INDENT))
        self.info(text)

    def complain(self, text: str) -> None:
        """Print on stderr a part of what went wrong, with ``--quiet`` too."""
        _to(sys.stderr, text, color=self.colors_messages)

    def note(self, text: str) -> None:
        """Print on stderr what only a person who watches wants to know: not in a log."""
        if terminal.is_terminal(sys.stderr):
            self.info(text)

    def warn(self, text: str) -> None:
        self.info(f"warning: {text}")

    def warn_once(self, text: str) -> None:
        """Print a warning, unless this run has one already: one credential that ends is one warning."""
        if not self.warned:
            self.warned.append(text)
            self.warn(text)

    def progress_bar(
        self, title: str, total: int | None = None, *, unit: str | None = None, is_beside_content: bool = False
    ) -> terminal.Progress:
        """Return a progress bar, which draws only on a terminal; without a unit it counts bytes.

        ``is_beside_content`` says that stdout gets content meanwhile: on a terminal the two would mix.
        """
        mixes = is_beside_content and terminal.is_terminal(sys.stdout)
        return terminal.Progress(title, total, self.progress and not mixes, unit)

    def verbose(self, text: str) -> None:
        if self.is_verbose:
            _to(sys.stderr, text, color=self.colors_messages)


@contextmanager
def _refuse_too_deep() -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise OutputFailed(
            "the operation is done, but the result of --query is nested too deeply to be printed", hint=HINT
        ) from None


def _is_of_write(result: object) -> bool:
    """Return whether a result, or the first of several, tells the outcome of a write."""
    return hasattr(result[0] if isinstance(result, list) and result else result, "outcome")


def _line(text: str) -> None:
    sys.stdout.write(text + "\n")


def _to(stream: TextIO, text: str, *, color: bool) -> None:
    from azguard.cli import redaction

    text = terminal.spell(redaction.redact(text), stream)
    text = terminal.paint_labels(text) if color else text
    try:
        stream.write(text + "\n")
        stream.flush()
    except OSError:
        pass  # The reader of stderr has gone; the exit status still tells.


def trace_to(out: Output, shared: Mapping[str, Any], environ: Mapping[str, str]) -> AbstractContextManager[None]:
    """Return a block whose requests are told on stderr, without the credentials that are in them."""
    from azguard.cli import redaction

    began, secrets = time.monotonic(), redaction.find_secrets(shared, environ)

    def tell(text: str) -> None:
        out.verbose(f"{time.monotonic() - began:7.3f} s  {redaction.redact(text, secrets)}")

    return listeners.listen_to_requests(tell)
