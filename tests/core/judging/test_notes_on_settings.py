"""What of the person's settings was not compared is named in the verdict, so that nobody takes it for compared."""

from tests.core.judging.cases import verdict


def test_settings_that_were_not_compared_are_named() -> None:
    judgement = verdict(not_compared=("/h/.agent/a (too deep)",))
    (note,) = [note for note in judgement.notes if note.kind == "settings-not-all-compared"]
    assert "/h/.agent/a (too deep)" in note.text
    assert "settings-not-all-compared" not in [note.kind for note in verdict().notes]
