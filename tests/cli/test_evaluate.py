"""``asr evaluate``: what people see, where it goes, and how it ends."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

from asrcli.cli.score_table import render_table
from asrcli.evaluation import Pair, score
from tests.checkpoints import QWEN
from tests.checkpoints.recordings import unseen_utterances
from tests.checkpoints.speech_bank import SpeechBank
from tests.cli.conftest import Run
from tests.cli.runs import asr, environment, speech, write_wave

FOX = Pair(
    name="talks/fox.wav",
    reference="The quick brown fox jumps over the lazy dog.",
    hypothesis="the quack brown jumps over a the lazy dog",
    language="en",
    duration=62.4,
)
PERFECT = Pair(
    name="talks/one.wav", reference="one", hypothesis="One.", language="en", duration=1.0
)
KOREAN = Pair(name="날씨.wav", reference="오늘은 날씨가 좋다", hypothesis="오늘은 날씨는 좋다")
CONTROLS = re.compile(r"\x1b\[[0-9;]*m")


def test_the_table_without_a_terminal() -> None:
    evaluation = score([PERFECT, FOX], model="whisper:base")
    assert render_table(evaluation, num_worst=3, width=None) == (
        "file            audio  reference     WER     CER  ins  del  sub\n"
        "talks/fox.wav    1:02    9 words  33.33%  16.28%    1    1    1\n"
        "talks/one.wav    0:01     1 word   0.00%   0.00%    0    0    0\n"
        "total, 2 files   1:03   10 words  30.00%  15.22%    1    1    1\n"
        "whisper:base · normalizer: english\n"
        "\n"
        "talks/fox.wav  WER 33.33%\n"
        "REF: the quick brown fox jumps over * the lazy dog\n"
        "HYP: the quack brown *** jumps over a the lazy dog\n"
        "         S           D              I\n"
    )


def test_words_and_characters_in_one_table() -> None:
    silent = Pair(name="s.wav", reference="", hypothesis="Thank you.")
    assert render_table(score([KOREAN, silent, PERFECT]), num_worst=0, width=None) == (
        "file            audio  reference      WER      CER  ins  del  sub\n"
        "s.wav               –    0 words        –        –    2    0    0\n"
        "날씨.wav            –    8 chars   33.33%   12.50%    0    0    1\n"
        "talks/one.wav    0:01     1 word    0.00%    0.00%    0    0    0\n"
        "total, 2 files   0:01     1 word  200.00%  300.00%    2    0    0\n"
        "total, 1 file       –    8 chars   33.33%   12.50%    0    0    1\n"
        "normalizer: english (1), multilingual (2)\n"
    )


def test_wide_characters_stand_under_one_another() -> None:
    table = render_table(score([KOREAN]), num_worst=1, width=None)
    assert table.splitlines()[-3:] == [
        "REF: 오늘은날씨가좋다",
        "HYP: 오늘은날씨는좋다",
        "               S",
    ]


def test_no_name_is_cut_without_a_terminal() -> None:
    name = f"{'very long folder/' * 20}a.wav"
    pair = Pair(name=name, reference="one", hypothesis="two")
    lines = render_table(score([pair]), num_worst=1, width=None).splitlines()
    assert lines[1].startswith(f"{name} ")
    assert f"{name}  WER 100.00%" in lines


@pytest.mark.parametrize("width", [60, 80, 130])
def test_on_a_terminal_lines_are_as_long_as_it_is_wide(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    words = [f"word{number}" for number in range(200)]
    heard = [word if number % 4 else f"{word}x" for number, word in enumerate(words)]
    chinese = Pair(name="z" * 90, reference="今天" * 100, hypothesis="明天" * 100, language="de")
    long = Pair(name="a", reference=" ".join(words), hypothesis=" ".join(heard))
    text = render_table(score([long, chinese, FOX]), num_worst=3, width=width)
    assert "\x1b[" in text
    plain = CONTROLS.sub("", text)
    assert max(map(cell_len, plain.splitlines())) <= width
    assert plain.split("total,")[0].replace("fox", "").count("z") == 90  # wrapped, not cut
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[0-9;]*3\d", render_table(score([FOX]), num_worst=1, width=width))


def test_long_stretches_without_errors_shrink() -> None:
    words = [f"w{number}" for number in range(50)]
    reference = " ".join(words)
    wrong = " ".join([*words[:24], "x", *words[25:]])
    pair = Pair(name="a", reference=reference, hypothesis=wrong)
    lines = render_table(score([pair]), num_worst=1, width=None).splitlines()
    assert lines[-3:] == [
        "REF: … w19 w20 w21 w22 w23 w24 w25 w26 w27 w28 w29 …",
        "HYP: … w19 w20 w21 w22 w23 x   w25 w26 w27 w28 w29 …",
        "                           S",
    ]


def test_very_many_errors_are_counted_rather_than_shown() -> None:
    pair = Pair(name="a", reference=" ".join(["aaaa"] * 1000), hypothesis="")
    lines = render_table(score([pair]), num_worst=1, width=None).splitlines()
    # 95 cells hold 19 words of 4 and the blanks between them.
    assert lines.count("     " + " ".join(["D   "] * 19).rstrip()) == 12
    assert lines[-1] == f"… and {1000 - 12 * 19} more; -f json has them all"


def test_escape_sequences_in_texts_are_harmless() -> None:
    pair = Pair(name="a", reference="one\x1b[31m two", hypothesis="one", language="de")
    assert "\x1b" not in render_table(score([pair]), num_worst=1, width=None)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[str, str]:
    """References and transcripts: one wrong word of six."""
    for name, said in (("references", "green fields"), ("transcripts", "green yields")):
        (tmp_path / name / "sub").mkdir(parents=True)
        (tmp_path / name / "a.txt").write_text("Good morning, everybody here.\n")
        (tmp_path / name / "sub" / "b.txt").write_text(said)
    return str(tmp_path / "references"), str(tmp_path / "transcripts")


def test_transcripts_that_are_there(run: Run, folders: tuple[str, str]) -> None:
    references, transcripts = folders
    arguments = ("evaluate", "--references", references, "--transcripts", transcripts, "-l", "en")
    code, out, err = run(*arguments)
    assert (code, err) == (0, "")
    assert out == (
        "file            audio  reference     WER    CER  ins  del  sub\n"
        "sub/b               –    2 words  50.00%  8.33%    0    0    1\n"
        "a                   –    4 words   0.00%  0.00%    0    0    0\n"
        "total, 2 files      –    6 words  16.67%  2.56%    0    0    1\n"
        "normalizer: english\n"
        "\n"
        "sub/b  WER 50.00%\n"
        "REF: green fields\n"
        "HYP: green yields\n"
        "           S\n"
    )
    assert "REF" not in run(*arguments, "--worst", "0").out
    values = json.loads(run(*arguments, "-f", "json", "--metric", "cer").out)
    assert [file["metric"] for file in values["files"]] == ["cer", "cer"]
    assert values["total"]["cer"] == pytest.approx(1 / 39, abs=1e-6)


def test_one_that_is_missing_leaves_the_others(run: Run, folders: tuple[str, str]) -> None:
    references, transcripts = folders
    (Path(transcripts) / "a.txt").unlink()
    (Path(references) / "bad.txt").write_bytes(b"\xff")
    code, out, err = run("evaluate", "--references", references, "--transcripts", transcripts)
    assert code == 1
    assert out.splitlines()[2].startswith("total, 1 file ")
    missing = f"a: no transcript ({transcripts}/a.txt is missing)"
    bad = f"{references}/bad.txt: not UTF-8 text (byte 0xff at 0)"
    assert err.splitlines() == [
        f"error: {bad}",
        "hint: save it as UTF-8",
        f"error: {missing}",
        "1 file of unknown language: --language en reads English numbers",
        "1 of 3 files scored, 2 failed",
        f"  {bad}",
        f"  {missing}",
    ]


@pytest.mark.parametrize("name", [None, "m.tsv", "a.text", ".a.txt"])
def test_references_without_texts(run: Run, tmp_path: Path, name: str | None) -> None:
    for folder in ("references", "transcripts"):
        (tmp_path / folder).mkdir()
    if name is not None:
        (tmp_path / "references" / name).write_text("file\ttext\na.wav\tone\n")
    places = ("--references", f"{tmp_path}/references", "--transcripts", f"{tmp_path}/transcripts")
    code, out, err = run("evaluate", *places, "--quiet")
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        f"error: {tmp_path}/references: no .txt files in this folder",
        "hint: --references takes a folder of .txt files or a manifest",
    ]


def test_suffixes_in_capitals(run: Run, folders: tuple[str, str]) -> None:
    references, transcripts = folders
    for folder in folders:
        for name in ("a", "sub/b"):
            (Path(folder) / f"{name}.txt").rename(Path(folder) / f"{name}.TXT")
    code, out, err = run("evaluate", "--references", references, "--transcripts", transcripts)
    assert (code, out.splitlines()[3].split()[:3]) == (0, ["total,", "2", "files"])
    assert err == "2 files of unknown language: --language en reads English numbers\n"


def test_a_transcript_of_another_recording_is_not_scored(
    run: Run, folders: tuple[str, str]
) -> None:
    references, transcripts = folders
    (Path(references) / "sub" / "a.txt").write_text("something else")
    arguments = ("--references", references, "--transcripts", transcripts, "-l", "en")
    code, out, err = run("evaluate", *arguments)
    message = f"sub/a: no transcript of its own ({transcripts}/a.txt is that of a)"
    assert (code, out.splitlines()[3].split()[:3]) == (1, ["total,", "2", "files"])
    assert err.splitlines() == [
        f"error: {message}", "2 of 3 files scored, 1 failed", f"  {message}",
    ]  # fmt: skip


def test_transcripts_further_up_are_told_of(run: Run, folders: tuple[str, str]) -> None:
    references, transcripts = folders
    (Path(transcripts) / "sub" / "b.txt").rename(Path(transcripts) / "b.txt")
    arguments = ("--references", references, "--transcripts", transcripts, "-l", "en")
    code, _, err = run("evaluate", *arguments)
    assert (code, err) == (
        0,
        f"sub/b: {transcripts}/b.txt is taken for its transcript, "
        "without the first folder of its path\n",
    )


def test_texts_that_cannot_be_scored(run: Run, folders: tuple[str, str]) -> None:
    references, transcripts = folders
    digits = "7" * 5000
    (Path(transcripts) / "a.txt").write_text(digits)
    arguments = ("--references", references, "--transcripts", transcripts, "-l", "en")
    code, out, err = run("evaluate", *arguments, "-f", "json")
    message = "a: cannot be scored (AssertionError)"
    assert code == 1
    assert err.splitlines() == [
        f"error: {message}",
        "hint: --normalizer none takes texts as they are",
        "1 of 2 files scored, 1 failed",
        f"  {message}",
    ]
    values = json.loads(out)
    assert [file["file"] for file in values["files"]] == ["sub/b"]
    assert values["failures"] == [message]
    assert run("evaluate", *arguments, "--normalizer", "none", "--worst", "0").code == 0
    (Path(transcripts) / "sub" / "b.txt").write_text(digits)
    code, out, err = run("evaluate", *arguments)
    assert (code, out) == (1, "")
    assert err.splitlines()[-1] == "0 of 2 files scored, 2 failed"


def test_a_manifest_of_parts_is_told_of_once(
    run: Run, folders: tuple[str, str], tmp_path: Path
) -> None:
    _, transcripts = folders
    spoken = {"language": "en", "task": "transcribe", "segments": [], "model": "m", "text": "one"}
    for name in ("c", "d", "e"):
        values = json.dumps(spoken | {"duration": 60.5})
        (Path(transcripts) / f"{name}.json").write_text(values)
    manifest = tmp_path / "m.jsonl"
    durations = {"c": 60.0, "d": 2.5, "e": 3}
    rows = [{"audio": f"{n}.wav", "text": "one", "duration": d} for n, d in durations.items()]
    manifest.write_text("\n".join(map(json.dumps, rows)))
    places = ("--references", str(manifest), "--transcripts", transcripts)
    code, _, err = run("evaluate", *places)
    warning = "the text is of 2.5 s, but all 60.5 s are compared"
    assert (code, err) == (0, f"warning: {tmp_path}/d.wav: {warning}\n")
    manifest.write_text(json.dumps(rows[1] | {"offset": 7}))
    assert run("evaluate", *places).err == (
        f"warning: {manifest}: line 1: the text is of what comes after 7 s, "
        "but all of a recording is compared\n"
    )


def test_patterns_without_inputs(run: Run, folders: tuple[str, str], tmp_path: Path) -> None:
    references, transcripts = folders
    manifest = tmp_path / "m.tsv"
    manifest.write_text("file\ttext\na.wav\tgood\nsub/b.mp3\tgreen yields\n")
    for place, pattern, name in (
        (str(manifest), "*.mp3", f"{tmp_path}/sub/b.mp3"),
        (references, "sub/*", "sub/b"),
    ):
        arguments = ("--references", place, "--transcripts", transcripts, "--pattern", pattern)
        code, out, _ = run("evaluate", *arguments, "-f", "json")
        assert code == 0
        assert [file["file"] for file in json.loads(out)["files"]] == [name]
    code, out, err = run("evaluate", "--references", str(manifest), "--pattern", "*.flac")
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        f"error: {manifest}: none of its recordings is meant",
        "hint: nothing there matches *.flac",
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--model", "whisper"], ["--multilingual"], ["--task", "transcribe"], ["--prompt", ""],
        ["--prompt-file", "nowhere"], ["--hotwords", "a"], ["--condition-on-previous-text"],
        ["--window", "30"], ["--no-vad"], ["--no-fallback"], ["--beam-size", "2"],
        ["--device", "cpu"], ["--dtype", "float32"], ["--batch-size", "1"],
    ],
)  # fmt: skip
def test_options_of_a_model_where_none_runs(
    run: Run, folders: tuple[str, str], arguments: list[str]
) -> None:
    references, transcripts = folders
    places = ("--references", references, "--transcripts", transcripts)
    code, out, err = run("evaluate", *places, *arguments)
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        f"error: {arguments[0]} is for a model, and with --transcripts no model runs",
        "hint: leave out one of the two",
    ]


def test_what_the_environment_says_of_a_model_is_for_other_runs(
    run: Run, folders: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    references, transcripts = folders
    for name, value in (
        ("MODEL", "no/such-model"),
        ("WINDOW", "0.5"),
        ("DEVICE", "abacus"),
        ("DTYPE", "none"),
        ("BATCH_SIZE", "3"),
        ("LANGUAGE", "en"),
    ):
        monkeypatch.setenv(f"ASR_{name}", value)
    places = ("--references", references, "--transcripts", transcripts)
    code, out, err = run("evaluate", *places)
    assert (code, err) == (0, "")
    assert "normalizer: english\n" in out


def test_nothing_that_was_read_is_overwritten(
    run: Run, folders: tuple[str, str], tmp_path: Path
) -> None:
    references, transcripts = folders
    (Path(transcripts) / "a.json").write_text("{}")
    (Path(references) / "bad.txt").write_bytes(b"\xff")
    (tmp_path / "link").symlink_to(transcripts)
    places = ("--references", references, "--transcripts", transcripts)
    for name in (
        f"{transcripts}/a.json",
        f"{transcripts}/a.txt",
        f"{transcripts}/sub/b.txt",
        f"{tmp_path}/link/sub/b.txt",
        f"{references}/bad.txt",
    ):
        before = Path(name).read_bytes()
        code, out, err = run("evaluate", *places, "-o", name)
        assert (code, out) == (2, "")
        assert err.splitlines()[0] == f"error: {name}: is an input"
        assert Path(name).read_bytes() == before
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("words")
    (tmp_path / "a.wav").touch()
    arguments = (f"{tmp_path}/a.wav", "--prompt-file", str(prompt), "-o", str(prompt))
    assert run("evaluate", *arguments).err.startswith(f"error: {prompt}: is an input\n")
    (tmp_path / "a.txt").touch()
    for name in ("a.wav", "a.txt"):
        code, _, err = run("evaluate", f"{tmp_path}/a.wav", "-o", f"{tmp_path}/{name}")
        assert (code, err.splitlines()[0]) == (2, f"error: {tmp_path}/{name}: is an input")


def test_the_report_goes_to_a_file(run: Run, folders: tuple[str, str], tmp_path: Path) -> None:
    references, transcripts = folders
    arguments = ("evaluate", "--references", references, "--transcripts", transcripts, "-l", "en")
    place = tmp_path / "new" / "scores.json"
    assert run(*arguments, "-o", str(place)) == (0, "", "")
    assert json.loads(place.read_text())["total"]["words"]["reference"] == 6
    table = tmp_path / "scores.txt"
    assert run(*arguments, "-o", str(table)) == (0, "", "")
    assert table.read_text() == run(*arguments).out
    for name, exit_code, complaint in (
        (f"{references}/a.txt", 2, f"{references}/a.txt: is an input"),
        (references, 1, f"{references}: is a folder"),
        ("", 2, "the output is an empty name"),
    ):
        code, out, err = run(*arguments, "-o", name)
        assert (code, out, err.splitlines()[0]) == (exit_code, "", f"error: {complaint}")
    assert (Path(references) / "a.txt").read_text().startswith("Good morning")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "nothing says which recordings are meant"),
        (["--references", "FOLDER"], "nothing says which recordings are meant"),
        (["FOLDER"], "FOLDER: no audio or video in this folder"),
        (["a.wav", "--references", "nowhere"], "nowhere: no such file or folder"),
        (["a.wav", "--normalizer", "french"], "normalizer 'french' is unknown"),
        (["a.wav", "--metric", "mer"], "metric 'mer' is unknown"),
        (["a.wav", "--format", "srt"], "format 'srt' is unknown"),
        (["a.wav", "--language", "xx"], "language 'xx' is unknown"),
        (["a.wav", "--device", "tpu"], "device 'tpu' is unknown"),
        (["a.wav", "--transcripts", "nowhere"], "nowhere: no such folder"),
        (["a.wav", "--worst", "-1"], "invalid value for '--worst'"),
    ],
)
def test_wrong_usage(run: Run, tmp_path: Path, arguments: list[str], complaint: str) -> None:
    (tmp_path / "a.txt").touch()
    (tmp_path / "folder").mkdir()
    places = {"a.wav": f"{tmp_path}/a.wav", "FOLDER": f"{tmp_path}/folder"}
    code, out, err = run("evaluate", *(places.get(word, word) for word in arguments))
    assert (code, out) == (2, "")
    assert complaint.replace("FOLDER", places["FOLDER"]) in err.splitlines()[0]


def test_what_is_missing_is_told_without_a_model(run: Run, tmp_path: Path) -> None:
    wave = write_wave(tmp_path / "a.wav", speech()[:16_000])
    (tmp_path / "empty.wav").touch()
    manifest = tmp_path / "m.tsv"
    manifest.write_text("file\ttext\nabsent.wav\tone\nempty.wav\ttwo\n")
    code, out, err = run("evaluate", "--references", str(manifest), "-m", "no/such-model")
    assert (code, out) == (1, "")
    assert err.splitlines() == [
        f"error: {tmp_path}/absent.wav: no such file",
        f"error: {tmp_path}/empty.wav: empty file",
        "0 of 2 files scored, 2 failed",
    ]
    code, out, err = run("evaluate", str(wave), "-m", "no/such-model")
    assert (code, out) == (1, "")
    assert err == f"error: {wave}: no reference ({tmp_path}/a.txt is missing)\n"


def test_the_help_lists_every_option(run: Run) -> None:
    code, out, _ = run("evaluate", "--help")
    assert code == 0
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", out)) == {
        "--references", "--transcripts", "--normalizer", "--metric", "--format", "--output",
        "--worst", "--model", "--language", "--task", "--prompt", "--hotwords", "--window",
        "--pattern", "--multilingual", "--prompt-file", "--condition-on-previous-text",
        "--no-vad", "--no-fallback", "--beam-size", "--device", "--dtype", "--batch-size",
        "--quiet", "--verbose", "--help",
    }  # fmt: skip


def test_transcripts_and_help_import_nothing_heavy(folders: tuple[str, str]) -> None:
    references, transcripts = folders
    heavy = ("torch", "transformers", "librosa", "av", "numpy")
    scored = ["evaluate", "--references", references, "--transcripts", transcripts]
    for arguments, names in ((scored, heavy), (["evaluate", "--help"], (*heavy, "jiwer", "rich"))):
        program = (
            "import sys, asrcli.cli\n"
            f"sys.argv[1:] = {arguments!r}\n"
            "try: asrcli.cli.main()\n"
            "finally:\n"
            f"    print([name for name in {names!r} if name in sys.modules], file=sys.stderr)\n"
        )
        result = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, env=environment()
        )
        assert (result.returncode, result.stderr.splitlines()[-1]) == (0, "[]")


def test_a_model_on_a_folder_of_speech(tmp_path: Path, speech_bank: SpeechBank) -> None:
    """All that has a reference in one batch; bad files are named, the others scored."""
    utterances = unseen_utterances(speech_bank, 4, seed=55)
    clips = tmp_path / "clips"
    for number, utterance in enumerate(utterances):
        write_wave(clips / "sub" / f"{number}.wav", utterance.samples)
        (clips / "sub" / f"{number}.txt").write_text(utterance.text)
    write_wave(clips / "lone.wav", utterances[0].samples)
    (clips / "zero.wav").touch()
    (clips / "zero.txt").write_text("nothing")
    outcome = asr("evaluate", clips, "-m", QWEN, "--dtype", "float32", "-f", "json")
    assert outcome.code == 1
    lone = f"{clips}/lone.wav: no reference ({clips}/lone.txt is missing)"
    zero = f"{clips}/zero.wav: empty file"
    lines = outcome.err.splitlines()
    assert (lines[0], lines[2:]) == (
        f"error: {lone}",
        [f"error: {zero}", "4 of 6 files scored, 2 failed", f"  {lone}", f"  {zero}"],
    )
    values = json.loads(outcome.out)
    assert (values["model"], values["failures"]) == (str(QWEN), [lone, zero])
    texts = {f"{clips}/sub/{n}.wav": utterance for n, utterance in enumerate(utterances)}
    for file in values["files"]:
        utterance = texts.pop(file["file"])
        assert file["reference"] == utterance.text
        assert file["duration"] == pytest.approx(utterance.duration, abs=1e-3)
        assert (file["language"], file["normalizer"]) == ("en", "english")
    assert not texts
    assert values["total"]["wer"] <= 0.1
    assert values["total"]["duration"] == pytest.approx(
        sum(utterance.duration for utterance in utterances), abs=1e-2
    )
