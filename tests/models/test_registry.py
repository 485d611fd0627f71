from __future__ import annotations

import logging

import pytest

from asrcli.errors import CheckpointError
from asrcli.models.registry import aliases, families, find_family
from tests.models.conftest import FAMILIES, Announce
from tests.models.sample_families import OTHER, WHISPER


def test_families_come_from_entry_points(announce: Announce) -> None:
    announce(FAMILIES)
    assert dict(families()) == {"whisper": WHISPER, "other": OTHER}
    assert list(aliases()) == ["other", "whisper:tiny", "whisper:base", "whisper:turbo"]
    assert aliases()["whisper:base"] == (WHISPER, WHISPER.aliases[1])


def test_architecture_is_found_by_its_exact_name(announce: Announce) -> None:
    announce(FAMILIES)
    assert find_family("OtherForConditionalGeneration") is OTHER


@pytest.mark.parametrize("name", ["whisperforconditionalgeneration", "WhisperModel", ""])
def test_unknown_architecture_lists_the_known_ones(announce: Announce, name: str) -> None:
    announce(FAMILIES)
    with pytest.raises(CheckpointError, match=f"architecture {name} is unknown") as caught:
        find_family(name)
    assert caught.value.hint == (
        "known: OtherForConditionalGeneration, WhisperForConditionalGeneration"
    )


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("MISSING", "AttributeError"),
        ("NOT_A_FAMILY", "TypeError: not a Family but object"),
        ("SAME_ALIAS", "ValueError: whisper:base is taken by another family"),
        ("WHISPER", "ValueError: the name whisper is taken"),
    ],
)
def test_a_broken_family_is_named_and_the_rest_stays(
    announce: Announce, caplog: pytest.LogCaptureFixture, value: str, reason: str
) -> None:
    announce({**FAMILIES, "zzz": value})
    assert set(families()) == {"whisper", "other"}
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage().startswith(
        f"model family zzz (tests.models.sample_families:{value}): {reason}"
    )
    assert "\n" not in record.getMessage()
