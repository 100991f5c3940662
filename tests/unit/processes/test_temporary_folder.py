import signal
import tempfile
from pathlib import Path

import pytest

from azguard.processes import signals


def test_a_signal_while_it_is_made_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = tempfile.mkdtemp

    def make_and_interrupt(*_: object) -> str:
        made = make(dir=tmp_path)
        signal.raise_signal(signal.SIGINT)
        return made

    monkeypatch.setattr(tempfile, "mkdtemp", make_and_interrupt)
    with pytest.raises(KeyboardInterrupt), signals.hold_temporary_folder("x-"):
        pytest.fail("the signal was lost")
    assert list(tmp_path.iterdir()) == []


def test_it_ends_with_its_block() -> None:
    with signals.hold_temporary_folder("azguard-test-") as folder:
        assert (Path(folder).name[:13], Path(folder).is_dir()) == ("azguard-test-", True)
    assert not Path(folder).exists()
