from __future__ import annotations

from pathlib import Path

import asrcli.engine

MODELS = ("whisper", "qwen", "glm")


def test_the_engine_holds_no_model_name() -> None:
    folder = Path(asrcli.engine.__file__).parent
    lines = [
        f"{path.name}:{number}: {line.strip()}"
        for path in sorted(folder.rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), start=1)
    ]
    assert len(lines) > 500
    assert not [line for line in lines if any(model in line.lower() for model in MODELS)]
