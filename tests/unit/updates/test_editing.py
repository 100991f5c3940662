"""A session of editing, with a function in the place of the editor: what is written, merged, asked and kept."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from azguard.cache import kept_files
from azguard.errors import AzguardError, TransformFailed, UsageError
from azguard.folders import UNSAVED, Folders
from azguard.processes import locked_file
from azguard.requests.lineage import new_op
from azguard.updates.editing import EditTools, check_resumable, edit_and_record
from azguard.updates.recording import LocalRecords, MergedVersion, UpdateReport, UpdateRequest
from azguard.updates.resource import UpdatePlan
from tests.support.cases import cases
from tests.support.fake_resource import FakeResource, Fault, Store
from tests.unit.updates.test_recording import Reads

OP = new_op(b"0" * 12)
WRITTEN = datetime(2026, 11, 25, 12, tzinfo=UTC)
BASE = b"a\nb\nc\nd\ne\n"
Act = Callable[[Path], object]


def write(content: bytes) -> Act:
    return lambda path: path.write_bytes(content)


def replace(old: bytes, new: bytes) -> Act:
    return lambda path: path.write_bytes(path.read_bytes().replace(old, new))


def fail(path: Path) -> None:
    raise TransformFailed("the editor ended with status 1")


def refuse_x(source: bytes, made: bytes, content_type: str | None) -> None:
    if b"x" in made:
        raise TransformFailed("there is an x")


@dataclass
class Desk:
    """A person, an editor and a store."""

    folder: Path
    store: Store = field(default_factory=lambda: Store.holding(BASE, written_at=WRITTEN))
    #: What the person does, each time that the editor opens.
    acts: list[Act] = field(default_factory=list)
    #: What others do while the editor is open, by the number of the time, from 0.
    others: dict[int, Callable[[], object]] = field(default_factory=dict)
    #: What the person answers; None if there is no one to ask.
    answers: list[bool] | None = None
    shown: list[bytes] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    deadlines: int = 0

    def edit(
        self, *acts: Act, faults: tuple[Fault, ...] = (), resumed: Path | None = None, **plan: Any
    ) -> UpdateReport:
        self.acts = list(acts)
        request = UpdateRequest(
            resource=FakeResource(self.store, iter(faults)),
            plan=UpdatePlan(lambda content: content, OP, **plan),
            deadline=self.store.clock.deadline(5),
            shows_content=True,
        )
        tools = EditTools(
            run_editor=self._run,
            ask=None if self.answers is None else self._answer,
            tell=self.told.append,
            folder=self.folders.kept,
            name="site/config.txt",
            check=refuse_x,
        )
        records = LocalRecords(folders=self.folders, reads=Reads())
        return edit_and_record(request, tools, records, start_deadline=self._deadline, resumed=resumed)

    def failure(self, *acts: Act, **settings: Any) -> AzguardError:
        with pytest.raises(AzguardError) as caught:
            self.edit(*acts, **settings)
        return caught.value

    def theirs(self, content: bytes) -> Callable[[], object]:
        return lambda: self.store.put(self.store.etag, content, None, "", None)

    @property
    def folders(self) -> Folders:
        return Folders(self.folder / "cache", self.folder / "config")

    @property
    def files(self) -> list[str]:
        return sorted(path.name for path in self.folders.kept.rglob("*") if path.is_file())

    @property
    def content(self) -> bytes | None:
        return None if self.store.current is None else self.store.current.content

    def _run(self, path: Path) -> None:
        self.store.clock.now += 7200  # People take their time.
        self.shown.append(path.read_bytes())
        self.others.get(len(self.shown) - 1, lambda: None)()
        self.acts.pop(0)(path)

    def _answer(self, question: str) -> bool:
        assert self.answers is not None
        return self.answers.pop(0)

    def _deadline(self) -> Any:
        self.deadlines += 1
        return self.store.clock.deadline(5)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def kept(error: AzguardError) -> bytes:
    return Path(str(error.facts["kept"])).read_bytes()


def test_what_was_typed_is_written_once_and_the_file_goes(desk: Desk) -> None:
    report = desk.edit(replace(b"c", b"C"))
    assert (report.outcome, desk.content, len(desk.store.commits), desk.files) == (
        "committed",
        b"a\nb\nC\nd\ne\n",
        1,
        [],
    )


def test_the_time_of_the_person_is_not_the_time_of_the_write(desk: Desk) -> None:
    assert (desk.edit(replace(b"c", b"C")).outcome, desk.deadlines) == ("committed", 1)


@pytest.mark.parametrize("act", [write(BASE), lambda path: None])
def test_what_was_not_changed_is_not_written(desk: Desk, act: Act) -> None:
    report = desk.edit(act)
    assert (report.outcome, report.etag, desk.store.commits, desk.files) == ("unchanged", desk.store.etag, [], [])


def test_the_end_of_the_last_line_alone_is_no_change(desk: Desk) -> None:
    desk.store = Store.holding(b"one line")
    assert (desk.edit(write(b"one line\n")).outcome, desk.store.commits) == ("unchanged", [])


def test_a_change_of_other_lines_is_merged(desk: Desk) -> None:
    desk.others[0] = desk.theirs(b"A\nb\nc\nd\ne\n")
    report = desk.edit(replace(b"e", b"E"))
    assert (report.outcome, desk.content, len(desk.shown)) == ("committed", b"A\nb\nc\nd\nE\n", 1)
    assert desk.told == ["another writer wrote meanwhile (2026-11-25T12:00:00Z): your change is merged with theirs"]
    assert report.merged_with == MergedVersion('"E2"', WRITTEN)


def test_what_another_wrote_while_nothing_was_typed_stays(desk: Desk) -> None:
    desk.others[0] = desk.theirs(b"A\n")
    assert (desk.edit(lambda path: None).outcome, desk.content) == ("unchanged", b"A\n")
    assert desk.told == ["you changed nothing; what another writer wrote meanwhile (2026-11-25T12:00:00Z) stays"]


def test_a_conflict_opens_the_editor_on_both(desk: Desk) -> None:
    desk.others[0] = desk.theirs(b"a\nb\nT\nd\ne\n")
    report = desk.edit(replace(b"c", b"C"), write(b"a\nb\nCT\nd\ne\n"))
    assert report.merged_with == MergedVersion('"E2"', WRITTEN)
    assert desk.shown[1] == b"a\nb\n<<<<<<< yours\nC\n=======\nT\n>>>>>>> theirs\nd\ne\n"
    assert (desk.content, desk.files) == (b"a\nb\nCT\nd\ne\n", [])


def test_after_a_second_conflict_the_second_change_is_the_base(desk: Desk) -> None:
    desk.others = {0: desk.theirs(b"T\n"), 1: desk.theirs(b"U\n")}
    desk.edit(write(b"C\n"), write(b"CT\n"), write(b"CTU\n"))
    assert (desk.shown[2], desk.content) == (b"<<<<<<< yours\nCT\n=======\nU\n>>>>>>> theirs\n", b"CTU\n")


def test_all_attempts_of_a_session_are_one_op(desk: Desk) -> None:
    desk.others[0] = desk.theirs(b"T\n")
    desk.edit(write(b"C\n"), write(b"CT\n"), faults=(Fault.LOST,))
    assert (len(desk.store.commits_of(OP)), desk.content) == (1, b"CT\n")


def test_an_op_that_is_done_opens_no_editor(desk: Desk) -> None:
    desk.edit(write(b"C\n"))
    desk.shown.clear()
    assert (desk.edit().outcome, desk.shown, desk.content) == ("applied_before", [], b"C\n")


def test_marks_that_are_left_are_refused_and_both_sides_kept(desk: Desk) -> None:
    desk.others[0] = desk.theirs(b"T\n")
    error = desk.failure(write(b"C\n"), lambda path: None)
    assert (error.exit_code, error.reason, desk.content) == (65, "edit_has_marks", b"T\n")
    assert kept(error) == b"<<<<<<< yours\nC\n=======\nT\n>>>>>>> theirs\n"


def test_a_person_is_asked_to_mend_what_cannot_be_written(desk: Desk) -> None:
    desk.answers = [True]
    desk.edit(write(b"x\n"), write(b"y\n"))
    assert (desk.told, desk.shown[1], desk.content) == (["error: there is an x"], b"x\n", b"y\n")


def test_a_person_who_does_not_mend_it_keeps_it(desk: Desk) -> None:
    desk.answers = [False]
    error = desk.failure(write(b"x\n"))
    assert (error.exit_code, kept(error), desk.content) == (65, b"x\n", BASE)


def test_a_person_who_does_not_merge_keeps_the_change_and_its_base(desk: Desk) -> None:
    desk.answers = [False]
    desk.others[0] = desk.theirs(b"T\n")
    error = desk.failure(write(b"C\n"))
    path = Path(str(error.facts["kept"]))
    assert (kept(error), path.with_name("config.txt.base").read_bytes(), desk.content) == (b"C\n", BASE, b"T\n")


def test_a_merge_that_cannot_be_written_opens_the_editor_with_the_reason(desk: Desk) -> None:
    desk.others[0] = desk.theirs(b"xa\nb\nc\nd\ne\n")
    desk.edit(replace(b"e", b"E"), write(b"fine\n"))
    assert ("there is an x" in desk.told[0], desk.shown[1], desk.content) == (True, b"xa\nb\nc\nd\nE\n", b"fine\n")


def test_what_was_typed_outlives_an_editor_that_fails(desk: Desk) -> None:
    def type_and_fail(path: Path) -> None:
        path.write_bytes(b"typed\n")
        fail(path)

    error = desk.failure(type_and_fail)
    assert (error.exit_code, kept(error), error.detail) == (
        65,
        b"typed\n",
        (f"your text is kept in {error.facts['kept']}",),
    )


def test_nothing_is_kept_of_an_editor_that_fails_at_once(desk: Desk) -> None:
    error = desk.failure(fail)
    assert ("kept" in error.facts, desk.files) == (False, [])


def test_what_was_typed_outlives_a_write_that_fails(desk: Desk) -> None:
    error = desk.failure(write(b"typed\n"), faults=(Fault.REFUSED,) * 99)
    assert (error.kind, kept(error), desk.content) == ("unavailable", b"typed\n", BASE)
    assert error.values["is_edit"] is True


def test_what_was_typed_outlives_ctrl_c(desk: Desk) -> None:
    def interrupt(path: Path) -> None:
        path.write_bytes(b"typed\n")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        desk.edit(interrupt)
    (left,) = desk.folders.kept.rglob("config.txt")
    assert (desk.files, desk.told) == (["config.txt", "config.txt.base"], [f"your text is kept in {left}"])


def test_nothing_is_left_of_ctrl_c_before_anything_was_typed(desk: Desk) -> None:
    def interrupt(path: Path) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        desk.edit(interrupt)
    assert (desk.files, desk.told) == ([], [])


def test_a_later_session_goes_on_and_merges(desk: Desk) -> None:
    error = desk.failure(replace(b"e", b"E"), faults=(Fault.REFUSED,) * 99)
    desk.theirs(b"A\nb\nc\nd\ne\n")()
    path = Path(str(error.facts["kept"]))
    check_resumable(path)
    report = desk.edit(lambda path: None, resumed=path)
    assert (desk.shown[-1], report.outcome, desk.content, desk.files) == (
        b"a\nb\nc\nd\nE\n",
        "committed",
        b"A\nb\nc\nd\nE\n",
        [],
    )


@cases("folder", "aaa", "zzz")
def test_a_file_that_was_moved_elsewhere_is_kept_although_it_is_written(folder: str, tmp_path: Path) -> None:
    desk = Desk(tmp_path / folder)
    error = desk.failure(replace(b"e", b"E"), faults=(Fault.REFUSED,) * 99)
    left = Path(str(error.facts["kept"])).parent
    moved = shutil.copytree(left, desk.folder / folder / left.name) / "config.txt"
    report = desk.edit(lambda path: None, resumed=moved)
    assert (report.outcome, moved.exists()) == ("committed", True)


def test_an_editor_opens_also_where_nothing_can_be_kept(desk: Desk) -> None:
    (desk.folder / "cache").touch()
    assert desk.edit(replace(b"c", b"C")).outcome == "committed"


def test_ctrl_c_before_the_editor_opens_tells_of_no_file(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(FakeResource, "read", interrupt)
    with pytest.raises(KeyboardInterrupt):
        desk.edit()
    assert desk.told == []


def test_a_file_that_no_session_left_is_not_gone_on_with(tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes(b"")
    with pytest.raises(UsageError) as caught:
        check_resumable(tmp_path / "mine")
    assert caught.value.reason == "edit_not_resumable"


def test_a_missing_resource_is_created_from_what_was_typed(desk: Desk) -> None:
    desk.store = Store()
    report = desk.edit(write(b"new\n"), create=b"")
    assert (report.created, desk.content) == (True, b"new\n")


def test_nothing_is_created_if_nothing_was_typed(desk: Desk) -> None:
    desk.store = Store()
    report = desk.edit(lambda path: None, create=b"start\n")
    assert (report.outcome, report.etag, desk.content, desk.files) == ("unchanged", None, None, [])
    assert desk.shown == [b"start\n"]


def test_a_missing_resource_is_told_before_the_editor_opens(desk: Desk) -> None:
    desk.store = Store()
    assert (desk.failure().kind, desk.shown) == ("not_found", [])


def test_what_was_deleted_meanwhile_is_not_made_again(desk: Desk) -> None:
    desk.others[0] = lambda: setattr(desk.store, "current", None)
    error = desk.failure(write(b"typed\n"))
    assert (error.kind, kept(error), desk.content) == ("not_found", b"typed\n", None)


@pytest.mark.skipif(not locked_file.IS_SUPPORTED, reason="this system has no such locks")
def test_the_files_of_an_open_editor_are_in_use_also_when_they_are_edited_again(desk: Desk) -> None:
    def list_in_use() -> list[bool]:
        found = kept_files.find(desk.folders.cache, datetime.now(UTC), {})
        return [each.in_use for each in found if each.kind == UNSAVED.kind]

    def type_and_fail(path: Path) -> None:
        seen.append(list_in_use())
        path.write_bytes(b"mine\n")
        fail(path)

    seen: list[list[bool]] = []
    error = desk.failure(type_and_fail)
    assert (seen, list_in_use()) == ([[True]], [False])
    desk.edit(lambda _: seen.append(list_in_use()), resumed=Path(str(error.facts["kept"])))
    assert (seen[1:], list_in_use()) == ([[True]], [])
