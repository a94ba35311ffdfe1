"""Guards what the command line calls itself."""

import pytest

from rankfall import cli


@pytest.mark.parametrize("words", [["measure", "model"], ["model"], ["compare"]])
def test_help_names_the_command_that_was_typed(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main([*words, "--help"])
    assert capsys.readouterr().out.startswith(f"usage: rankfall {' '.join(words)} ")
