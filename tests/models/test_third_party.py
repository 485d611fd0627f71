"""A model of a third party: one new file and one entry-point row, and everything else works."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

import asrcli
from asrcli.engine.decoder_only import DecoderOnly
from asrcli.engine.request import Hypothesis
from asrcli.engine.token_cache import TokenCache
from asrcli.errors import UsageError
from asrcli.models import base, registry
from asrcli.models.base import Model
from asrcli.options import Options
from asrcli.recognizer import Recognizer
from asrcli.transcript import Segment
from asrcli.windows import Stitcher, Window, cut
from tests.cli.runs import Outcome, asr, write_wave
from tests.speech import read

ROOT = Path(__file__).parents[2]

# ---- the new file, and the row

MODEL = '''\
"""Chirp: a model of one's own, whole in one file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asrcli.engine.request import Request, Sampling
from asrcli.errors import UsageError
from asrcli.models.base import Alias, Checkpoint, Detection, Family, Model, ModelFiles
from asrcli.transcript import Segment

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch
    from tokenizers import Tokenizer
    from torch import Tensor

    from asrcli.engine.request import Hypothesis
    from asrcli.options import Options
    from asrcli.windows import Window

FRAME = 400  # samples: 25 ms, one place of the prompt
MAX_NEW_TOKENS = 100  # more than there are words


class Processor:
    max_duration = 60.0
    default_duration = 30.0
    detection: Detection = "none"

    def __init__(self, name: str, tokenizer: Tokenizer) -> None:
        self._name = name
        self._tokenizer = tokenizer

    def num_tokens(self, duration: float) -> int:
        return round(duration * 16_000 / FRAME) + 1 + MAX_NEW_TOKENS

    def check(self, options: Options) -> tuple[str, ...]:
        if options.language is not None:
            raise UsageError(f"{self._name} cannot be told the language")
        return ()

    def prepare(self, request_id: int, window: Window, options: Options) -> Request:
        import torch

        num_frames = len(window.samples) // FRAME
        samples = torch.from_numpy(window.samples[: num_frames * FRAME])
        end, audio, text = self._tokenizer.encode("<end><audio><text>").ids
        context = self._tokenizer.encode(options.context).ids
        return Request(
            request_id=request_id,
            prompt_token_ids=(*[audio] * num_frames, *context, text),
            audio_span=(0, num_frames),
            input_features=samples.view(num_frames, FRAME).T,
            sampling=Sampling(
                max_new_tokens=options.max_new_tokens or MAX_NEW_TOKENS,
                eos_token_ids=frozenset({end}),
                temperature=options.temperature,
                seed=options.seed + window.index,
                logits_rules=(never_twice,),
            ),
        )


class Adapter:
    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def parse(self, hypothesis: Hypothesis, window: Window, options: Options) -> list[Segment]:
        text, tokens = self.draft(hypothesis), hypothesis.token_ids
        if not text:
            return []
        return [Segment(id=0, start=window.start, end=window.end, text=text, tokens=tokens)]

    def draft(self, hypothesis: Hypothesis) -> str:
        text: str = self._tokenizer.decode(hypothesis.token_ids)
        return text

    def language(self, hypothesis: Hypothesis, options: Options) -> str | None:
        return None


class Tower:
    def __init__(self, weight: Tensor) -> None:
        self._weight = weight

    def __call__(self, features: Sequence[Tensor]) -> list[Tensor]:
        return [frames.to(self._weight).T @ self._weight for frames in features]


def never_twice(logits: Tensor, token_ids: Sequence[Sequence[int]]) -> None:
    for row, said in enumerate(token_ids):
        logits[row, list(said)] = float("-inf")


def load(
    checkpoint: Checkpoint, files: ModelFiles, device: torch.device, dtype: torch.dtype
) -> Model:
    from tokenizers import Tokenizer

    from asrcli.engine.decoder_only import DecoderOnly
    from asrcli.models.language_model_weights import read_language_model

    tokenizer = Tokenizer.from_file(str(files.tokenizer_path))
    weights = read_language_model(files.tensors, files.config["text_config"], device, dtype)
    tower = Tower(files.tensors["audio.weight"].to(device, dtype))
    return Model(
        processor=Processor(checkpoint.name, tokenizer),
        adapter=Adapter(tokenizer),
        network=DecoderOnly(tower, weights),
    )


FAMILY = Family(
    name="chirp",
    architectures=("ChirpForConditionalGeneration",),
    aliases=(Alias(name="chirp", hub_id="example/chirp", num_parameters=30_000, languages=1),),
    times="windows",
    language_choice=False,
    hotwords=True,
    max_duration=60.0,
    load=load,
)
'''
ROW = 'chirp = "chirp_asr:FAMILY"'

# ---- a checkpoint of it, and audio

SPECIAL = ("<end>", "<audio>", "<text>")
WORDS = ("<unk>", ",", "red", "blue", *(f"word{number}" for number in range(60)))
WIDTH, FRAME = 32, 400
TEXT_CONFIG = {
    "hidden_size": WIDTH,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 4096,
}


def write_checkpoint(folder: Path) -> Path:
    """Random weights in Hugging Face's names, with a configuration and a vocabulary."""
    folder.mkdir()
    config = {"architectures": ["ChirpForConditionalGeneration"], "text_config": TEXT_CONFIG}
    (folder / "config.json").write_text(json.dumps(config))
    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in SPECIAL])
    tokenizer.save(str(folder / "tokenizer.json"))
    random = torch.Generator().manual_seed(0)
    tensors = {
        name: torch.randn(*shape, generator=random) / shape[-1] ** 0.5
        if len(shape) > 1
        else torch.ones(*shape)
        for name, shape in _shapes().items()
    }
    tensors["audio.weight"] *= 3.0  # audio is quieter than embeddings are
    save_file(tensors, folder / "model.safetensors")
    return folder


def _shapes() -> dict[str, tuple[int, ...]]:
    vocabulary = len(SPECIAL) + len(WORDS)
    shapes: dict[str, tuple[int, ...]] = {
        "audio.weight": (FRAME, WIDTH),
        "lm_head.weight": (vocabulary, WIDTH),
        "model.language_model.embed_tokens.weight": (vocabulary, WIDTH),
        "model.language_model.norm.weight": (WIDTH,),
    }
    for index in range(2):
        layer = f"model.language_model.layers.{index}"
        shapes |= {
            f"{layer}.input_layernorm.weight": (WIDTH,),
            f"{layer}.self_attn.q_proj.weight": (32, WIDTH),
            f"{layer}.self_attn.k_proj.weight": (16, WIDTH),
            f"{layer}.self_attn.v_proj.weight": (16, WIDTH),
            f"{layer}.self_attn.o_proj.weight": (WIDTH, 32),
            f"{layer}.post_attention_layernorm.weight": (WIDTH,),
            f"{layer}.mlp.gate_proj.weight": (64, WIDTH),
            f"{layer}.mlp.up_proj.weight": (64, WIDTH),
            f"{layer}.mlp.down_proj.weight": (WIDTH, 64),
        }
    return shapes


def write_noise(path: Path) -> Path:
    """2.6 s of noise that swells and fades, so that no two windows are alike."""
    random = np.random.default_rng(0)
    times = np.arange(round(2.6 * 16_000)) / 16_000
    samples = 0.3 * random.standard_normal(len(times)) * np.sin(2 * np.pi * 0.7 * times)
    return write_wave(path, np.clip(samples, -1, 1).astype(np.float32))


# ---- what is installed


class Installed(NamedTuple):
    """Where the third party's package lies, its checkpoint and a recording."""

    site: Path
    folder: Path
    wave: Path

    def asr(self, *arguments: str | Path) -> Outcome:
        """``asr`` in a process of its own, on a machine with the package."""
        packages = os.pathsep.join([str(self.site), str(ROOT)])
        return asr(*arguments, PYTHONPATH=packages, HF_HOME=str(self.site / "no-models"))


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    """The new file and the row, as pip lays a package down."""
    site = tmp_path / "site-packages"
    metadata = site / "chirp_asr-1.dist-info"
    metadata.mkdir(parents=True)
    (site / "chirp_asr.py").write_text(MODEL)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: chirp-asr\nVersion: 1\n")
    row = ROW.replace('"', "")  # all that pip changes of it
    (metadata / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{row}\n")
    return Installed(
        site, write_checkpoint(tmp_path / "checkpoint"), write_noise(tmp_path / "a.wav")
    )


@pytest.fixture
def recognizer(installed: Installed, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recognizer]:
    monkeypatch.syspath_prepend(installed.site)
    registry.families.cache_clear()
    registry.aliases.cache_clear()
    try:
        with Recognizer(str(installed.folder), device="cpu", dtype="float32") as recognizer:
            yield recognizer
    finally:
        sys.modules.pop("chirp_asr", None)
        registry.families.cache_clear()
        registry.aliases.cache_clear()


def say(model: Model, window: Window, options: Options) -> str:
    """What the network says of a window, without the engine: all is read anew for each id."""
    network = model.network
    assert isinstance(network, DecoderOnly)
    request = model.processor.prepare(0, window, options)
    assert request.audio_span is not None
    begin, end = request.audio_span
    (audio,) = network.encode([request.input_features])
    said: list[int] = []
    while not said or said[-1] not in request.sampling.eos_token_ids:
        prompt = network.embed(torch.tensor([*request.prompt_token_ids, *said]))
        prompt[begin:end] = audio
        cache = TokenCache(network.token_shape, network.device, network.dtype)
        cache.fit(1, len(prompt), 0)
        logits = network.logits(network.prefill(prompt, [len(prompt)], cache, 0))
        for rule in request.sampling.logits_rules:
            rule(logits, [said])
        said.append(int(logits.argmax()))
    hypothesis = Hypothesis(
        request_id=0, token_ids=tuple(said[:-1]), logprobs=(0.0,) * (len(said) - 1),
        finish_reason="stop",
    )  # fmt: skip
    return model.adapter.draft(hypothesis)


def windows(wave: Path, duration: float) -> list[Window]:
    return list(cut([read(wave)], recording_id=0, max_duration=duration))


# ---- what it comes to

EVERYTHING = Options(vad=False, fallback=False)  # what it hears is noise, and it talks nonsense


def test_one_file_and_one_row_are_all(recognizer: Recognizer, installed: Installed) -> None:
    assert recognizer.transcribe(installed.wave, EVERYTHING).text
    files = {name: str(getattr(module, "__file__", "")) for name, module in sys.modules.items()}
    assert [name for name in files if files[name].startswith(str(installed.site))] == ["chirp_asr"]
    points = [(point.name, point.value) for point in entry_points(group=registry.GROUP)]
    assert [row for row in points if "chirp" in row[1]] == [("chirp", "chirp_asr:FAMILY")]
    package = Path(asrcli.__file__).parent
    assert not [path for path in package.rglob("*.py") if "chirp" in path.read_text("utf-8")]


def test_it_transcribes(recognizer: Recognizer, installed: Installed) -> None:
    transcript = recognizer.transcribe(installed.wave, EVERYTHING)
    (window,) = windows(installed.wave, 30.0)
    expected = say(recognizer._model, window, Options())
    assert transcript.text == expected
    assert len(set(expected.split()) & set(WORDS)) >= 3
    (segment,) = transcript.segments
    assert (segment.start, segment.end, transcript.duration) == (0.0, 2.6, 2.6)
    assert (transcript.language, transcript.warnings) == (None, ())
    assert transcript.model == str(installed.folder)


def test_it_gets_hotwords_and_windows(recognizer: Recognizer, installed: Installed) -> None:
    options = replace(EVERYTHING, hotwords="red, blue", window=1.0)
    segments = recognizer.transcribe(installed.wave, options).segments
    cuts = windows(installed.wave, 1.0)
    assert len(cuts) >= 3
    expected, plain = (sewn(recognizer, cuts, each) for each in (options, Options()))
    assert [(s.start, s.end, s.text) for s in segments] == expected
    assert [text for _, _, text in expected] != [text for _, _, text in plain]
    assert len({segment.text for segment in segments}) > 1


def sewn(
    recognizer: Recognizer, cuts: list[Window], options: Options
) -> list[tuple[float, float, str]]:
    """What it says in windows that overlap where there is no pause."""
    stitcher = Stitcher()
    for window in cuts:
        text = say(recognizer._model, window, options)
        segment = Segment(id=0, start=window.start, end=window.end, text=text)
        overlap = (window.start, window.start + window.overlap) if window.overlap else None
        stitcher.add([segment], overlap)
    return [(segment.start, segment.end, segment.text) for segment in stitcher.segments]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Options(language="ko"), "cannot be told the language"),
        (Options(window=61.0), "takes in at most 60 s at once, not 61"),
    ],
)
def test_it_is_asked_what_it_cannot_do(
    recognizer: Recognizer, installed: Installed, options: Options, message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        recognizer.transcribe(installed.wave, options)
    assert str(caught.value) == f"{installed.folder} {message}"


def test_the_command_line_takes_it(recognizer: Recognizer, installed: Installed) -> None:
    arguments: list[str | Path] = [
        "transcribe",
        installed.wave,
        "-m",
        installed.folder,
        "-f",
        "json",
    ]
    arguments += ["--device", "cpu", "--dtype", "float32"]
    code, out, err = installed.asr(*arguments)
    assert code == 0, err
    transcript = recognizer.transcribe(installed.wave)
    assert json.loads(out)["text"] == transcript.text
    arguments += ["--hotwords", "red", "--hotwords", " blue ", "--window", "1"]
    code, out, err = installed.asr(*arguments)
    assert code == 0, err
    options = Options(hotwords="red, blue", window=1.0)
    expected = recognizer.transcribe(installed.wave, options)
    assert json.loads(out)["text"] == expected.text
    assert len(json.loads(out)["segments"]) == len(expected.segments)


def test_it_is_listed_beside_the_others(installed: Installed) -> None:
    code, out, _ = installed.asr("models")
    assert code == 0
    rows = {line.split("\t")[0]: line.split("\t")[1:] for line in out.splitlines()}
    assert rows["chirp"] == ["chirp", "0M", "English", "no", "yes", "windows", "yes", "60 s", "-"]
    assert "whisper:base" in rows


def test_listing_it_does_not_wait_for_torch(installed: Installed) -> None:
    program = (
        "import sys\n"
        "from asrcli.models.registry import families\n"
        "assert 'chirp' in families()\n"
        "print('torch' in sys.modules)\n"
    )
    packages = os.pathsep.join([str(installed.site), str(ROOT)])
    answer = subprocess.check_output(
        [sys.executable, "-c", program], env=os.environ | {"PYTHONPATH": packages}, text=True
    )
    assert answer == "False\n"


# ---- the README's ten lines


def readme_blocks() -> dict[str, str]:
    """Fenced blocks of the section on adding a model, by their language."""
    text = (ROOT / "README.md").read_text("utf-8")
    (section,) = re.findall(r"^## Adding a model\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", section, re.M | re.S)
    assert len(dict(blocks)) == len(blocks)
    return dict(blocks)


def functions(tree: ast.AST) -> dict[str, list[str]]:
    """Public functions and methods by their full names, with the names of what they take."""
    found = {}
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            found[node.name] = [argument.arg for argument in node.args.args]
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{name}": taken for name, taken in functions(node).items()}
    return found


def settings(tree: ast.Module) -> dict[str, Any]:
    """What FAMILY is given by name."""
    (call,) = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FAMILY"
    ]
    assert isinstance(call, ast.Call)
    return {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords if keyword.arg}


def test_the_readme_says_how() -> None:
    outline = readme_blocks()["python"]
    assert len([line for line in outline.splitlines() if line]) == 10
    told, made = ast.parse(outline), ast.parse(MODEL)
    assert functions(told).items() <= functions(made).items()
    assert settings(told).items() <= settings(made).items()
    assert readme_blocks()["toml"] == f'[project.entry-points."{registry.GROUP}"]\n{ROW}\n'


@pytest.mark.parametrize("name", ["Processor", "Adapter"])
def test_the_readme_leaves_nothing_of_the_contract_out(name: str) -> None:
    contract = {name for name in vars(getattr(base, name)) if not name.startswith("_")}
    outline = readme_blocks()["python"]
    told = {method.split(".")[1] for method in functions(ast.parse(outline)) if "." in method}
    comments = set(re.findall(r"\w+", " ".join(re.findall(r"#.*", outline))))
    assert len(contract) >= 3
    assert contract <= told | comments
