from __future__ import annotations

import os
from pathlib import Path

import pytest

from asrcli.audio.sources import MEDIA_SUFFIXES as SEARCHED_FOR
from asrcli.errors import UsageError
from asrcli.writers.outputs import MEDIA_SUFFIXES, Output, Plan, plan_outputs
from tests.writers.plans import STDIN, Recording, found, named, plan, targets

# Places


@pytest.mark.parametrize("sources", [named("talks/a.mp3"), [STDIN]])
@pytest.mark.parametrize("format", ["text", "json", "srt", "vtt"])
def test_one_file_in_one_format_goes_to_stdout(sources: list[Recording], format: str) -> None:
    assert plan(sources, format) == Plan(((Output(format, None),),), shares_stdout=False)


def test_beside_the_media() -> None:
    sources = named("a.mp3", "/x/b.c.mkv")
    assert targets(plan(sources, "srt", "json")) == [
        ["a.srt", "a.json"],
        ["/x/b.c.srt", "/x/b.c.json"],
    ]
    assert targets(plan(named("x/a.mp3"), "srt", "vtt")) == [["x/a.srt", "x/a.vtt"]]
    assert targets(plan(found("x", "y/a.mp3"), "txt", any_folder=True)) == [["x/y/a.txt"]]


def test_below_a_folder_with_its_tree() -> None:
    sources = [*found("talks", "x/a.wav", "y/a.wav"), *named("/other/b.flac")]
    assert targets(plan(sources, "srt", output="out", any_folder=True)) == [
        ["out/x/a.srt"],
        ["out/y/a.srt"],
        ["out/b.srt"],
    ]
    assert targets(plan([STDIN], "srt", "json", output="out/")) == [
        ["out/stdin.srt", "out/stdin.json"]
    ]


def test_a_format_that_is_named_twice_is_written_once() -> None:
    assert targets(plan(named("a.mp3"), "txt", "text", "TEXT", output="out")) == [["out/a.txt"]]
    assert targets(plan(named("a.mp3"), "txt", "text")) == [[None]]


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("Show.S01E01.DD2.0.H.264.wav", "Show.S01E01.DD2.0.H.264.srt"),
        ("Show.S01E01.DD2.0.H.264", "Show.S01E01.DD2.0.H.264.srt"),
        ("a.MP3", "a.srt"),
        ("a.wav.mp3", "a.wav.srt"),
        ("a.mp3.part", "a.mp3.part.srt"),
        ("noending", "noending.srt"),
        ("v1.2", "v1.2.srt"),
        (".mp3", ".mp3.srt"),
        (".hidden.mp3", ".hidden.srt"),
        ("a..mp3", "a..srt"),
        ("a. mp3", "a. mp3.srt"),
        ("-dash.wav", "-dash.srt"),
        ("[b] 'q' \"d\" $(x) *.wav", "[b] 'q' \"d\" $(x) *.srt"),
        (" space .wav", " space .srt"),
        ("space.wav ", "space.srt"),
        ("e\u0301te\u0301.wav", "e\u0301te\u0301.srt"),
        ("한국어 강의.m4a", "한국어 강의.srt"),
        ("caf\udce9.wav", "caf\udce9.srt"),
        ("x" * 250 + ".wav", "x" * 250 + ".srt"),
    ],
)
def test_only_the_suffix_of_media_is_replaced(name: str, result: str) -> None:
    (group,) = plan(named(f"d/{name}"), "srt", output="out").outputs
    assert os.fsencode(str(group[0].path)) == os.fsencode(f"out/{result}")
    (group,) = plan(found("d", name), "srt", any_folder=True).outputs
    assert os.fsencode(str(group[0].path)) == os.fsencode(f"d/{result}")


def test_the_suffixes_that_are_replaced_are_those_that_folders_are_searched_for() -> None:
    assert sorted(MEDIA_SUFFIXES - SEARCHED_FOR) == [".raw"]
    assert SEARCHED_FOR <= MEDIA_SUFFIXES


# A file that is named by -o


@pytest.mark.parametrize(
    ("output", "format"), [("out.srt", "srt"), ("x/Out.SRT", "srt"), ("o.txt", "text")]
)
@pytest.mark.parametrize("sources", [named("a.mp3"), [STDIN]])
def test_the_file_itself(sources: list[Recording], output: str, format: str) -> None:
    assert targets(plan(sources, format, output=output)) == [[output]]


def test_a_folder_that_is_called_like_a_file(work: Path) -> None:
    (work / "made.srt").mkdir()
    assert targets(plan(named("a.mp3"), "srt", output="made.srt")) == [["made.srt/a.srt"]]
    assert targets(plan(named("a.mp3"), "srt", output="new.srt/")) == [["new.srt/a.srt"]]
    assert targets(plan(named("a.mp3"), "srt", output="v1.2")) == [["v1.2/a.srt"]]


@pytest.mark.parametrize(
    ("sources", "formats", "message"),
    [
        (named("a.mp3", "b.mp3"), ("srt",), "out.srt is one file, but the results are of 2 files"),
        (named("a.mp3"), ("srt", "vtt"), "out.srt is one file, but the results are of 2 formats"),
        (named("a.mp3"), ("vtt",), "out.srt ends as srt does, but the format is vtt"),
    ],
)
def test_a_file_that_cannot_hold_the_results(
    sources: list[Recording], formats: tuple[str, ...], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        plan(sources, *formats, output="out.srt")
    assert str(caught.value) == message
    assert "folder" in (caught.value.hint or "")


def test_an_empty_name() -> None:
    with pytest.raises(UsageError, match="empty"):
        plan(named("a.mp3"), "srt", output="")


# Standard output


def test_several_files_share_stdout() -> None:
    sources = named("a.mp3", "b.mp3")
    for format in ("text", "json"):
        shared = plan(sources, format, output="-")
        assert shared == Plan(((Output(format, None),), (Output(format, None),)), True)
        assert shared.paths == ()


def test_a_folder_with_one_file_shares_stdout_too() -> None:
    assert plan(found("x", "a.mp3"), "json", output="-", any_folder=True).shares_stdout
    assert not plan(named("a.mp3"), "json", output="-").shares_stdout


@pytest.mark.parametrize("format", ["srt", "vtt"])
def test_subtitles_of_several_files_do_not_share_stdout(format: str) -> None:
    with pytest.raises(UsageError, match=f"cannot hold {format} of 2 files") as caught:
        plan(named("a.mp3", "b.mp3"), format, output="-")
    assert "-o FOLDER" in (caught.value.hint or "")


def test_several_formats_do_not_share_stdout() -> None:
    with pytest.raises(UsageError, match=r"several formats \(srt, json\)"):
        plan(named("a.mp3"), "srt", "json", output="-")


@pytest.mark.parametrize("sources", [[STDIN, *named("a.mp3")], [STDIN]])
def test_standard_input_has_nothing_beside_it(sources: list[Recording]) -> None:
    with pytest.raises(UsageError, match="standard input has no folder") as caught:
        plan(sources, "srt", "json")
    assert "-o" in (caught.value.hint or "")


def test_unknown_format() -> None:
    with pytest.raises(UsageError, match="format 'doc' is unknown"):
        plan(named("a.mp3"), "srt", "doc")


# Clashes


@pytest.mark.parametrize(
    ("sources", "output"),
    [
        (named("a.mp3", "a.wav"), None),
        (named("x/a.wav", "y/a.wav"), "out"),
        (named("a.mp3", "./x/../a.wav"), None),
        ([*named("stdin.wav"), STDIN], "out"),
    ],
)
def test_two_results_at_one_place(sources: list[Recording], output: str | None) -> None:
    with pytest.raises(UsageError) as caught:
        plan(sources, "json", "srt", output=output)
    assert all(source.name in str(caught.value) for source in sources)
    assert "would both be written to" in str(caught.value)
    assert "-o" in (caught.value.hint or "")
    assert "rename" in (caught.value.hint or "")


def test_two_results_at_one_place_through_a_link(work: Path) -> None:
    (work / "x").mkdir()
    (work / "y").symlink_to("x")
    with pytest.raises(UsageError, match=r"x/a\.mp3 and y/a\.wav would both"):
        plan(named("x/a.mp3", "y/a.wav"), "srt")


def test_names_that_differ_in_case_are_two() -> None:
    assert targets(plan(named("A.wav", "a.wav"), "srt")) == [["A.srt"], ["a.srt"]]


def test_a_result_never_overwrites_an_input(work: Path) -> None:
    (work / "a.json").write_bytes(b"media under a false name")
    (work / "out").mkdir()
    (work / "out" / "a.srt").symlink_to("../b.mp3")
    (work / "b.mp3").touch()
    with pytest.raises(
        UsageError, match=r"the result of a\.json would overwrite the input a\.json"
    ):
        plan(named("a.json"), "json", output="a.json")
    with pytest.raises(
        UsageError, match=r"result of a\.mp3 would overwrite the input b\.mp3 at out"
    ):
        plan(named("a.mp3", "b.mp3"), "srt", output="out")
    with pytest.raises(UsageError, match=r"result of a\.mp3 would overwrite the input a\.txt"):
        plan(named("a.mp3", "a.txt"), "text")


def test_a_result_never_overwrites_what_else_is_read(work: Path) -> None:
    (work / "talks").mkdir()
    (work / "talks" / "a.txt").write_text("Acme Inc.")
    (work / "link.txt").symlink_to("talks/a.txt")
    for prompt, output in (("talks/a.txt", None), ("link.txt", "talks"), ("./talks/a.txt", None)):
        with pytest.raises(UsageError) as caught:
            plan_outputs(
                found("talks", "a.flac"),
                formats=["text"],
                output=output,
                any_folder=True,
                other_inputs=[prompt],
            )
        assert str(caught.value) == (
            f"the result of talks/a.flac would overwrite the input {prompt} at talks/a.txt"
        )
    beside = plan_outputs(
        named("talks/a.flac"),
        formats=["json", "srt"],
        output=None,
        any_folder=False,
        other_inputs=["talks/a.txt"],
    )
    assert targets(beside) == [["talks/a.json", "talks/a.srt"]]
