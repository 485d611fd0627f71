from __future__ import annotations

import subprocess
import sys
import unicodedata

import pytest

from asrcli.errors import UsageError
from asrcli.languages import LANGUAGES, language_name, resolve_language, states_script

# The languages that OpenAI's Whisper has tokens for, by its own codes, in the order of its tokens.
WHISPER = """
    en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th ur
    hr bg lt la mi ml cy sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr pa si
    km sn yo so af oc ka be tg sd gu am yi lo uz fo ht ps tk nn mt sa lb my bo tl mg as tt haw ln ha
    ba jw su yue
"""

# The names by which Qwen3-ASR is told its languages, in the order of its model card.
QWEN3_ASR = {
    "Chinese": "zh",
    "English": "en",
    "Cantonese": "yue",
    "Arabic": "ar",
    "German": "de",
    "French": "fr",
    "Spanish": "es",
    "Portuguese": "pt",
    "Indonesian": "id",
    "Italian": "it",
    "Korean": "ko",
    "Russian": "ru",
    "Thai": "th",
    "Vietnamese": "vi",
    "Japanese": "ja",
    "Turkish": "tr",
    "Hindi": "hi",
    "Malay": "ms",
    "Dutch": "nl",
    "Swedish": "sv",
    "Danish": "da",
    "Finnish": "fi",
    "Polish": "pl",
    "Czech": "cs",
    "Filipino": "tl",
    "Persian": "fa",
    "Greek": "el",
    "Romanian": "ro",
    "Hungarian": "hu",
    "Macedonian": "mk",
}

SPELLINGS = {
    "ko": [
        "ko",
        "KO",
        " ko\n",
        "ko-KR",
        "ko_KR",
        "ko-Kore-KR",
        "ko_KR.UTF-8",
        "kor",
        "Korean",
        "korean",
        "KOREAN",
        "한국어",
        "한국말",
    ],
    "zh": [
        "zh",
        "zh-TW",
        "zh-CN",
        "zh-Hant",
        "zh-Hans-CN",
        "zh-cmn",
        "cmn",
        "cmn-Hans",
        "zho",
        "chi",
        "Chinese",
        "Mandarin",
        "mandarin  chinese",
        "中文",
        "汉语",
        "漢語",
        "普通话",
    ],
    "yue": ["yue", "zh-yue", "yue-HK", "Cantonese", "粵語", "粤语", "廣東話"],
    "pt": ["pt-BR", "pt_br", "por", "Portuguese", "Brazilian Portuguese", "português", "portugues"],
    "es": ["es-419", "spa", "Castilian", "Español", "espanol", "ESPAÑOL"],
    "de": ["de", "deu", "ger", "de-CH-1996", "Deutsch", "German"],
    "fr": ["fra", "fre", "Français", "francais", "fr-CA"],
    "ja": ["ja", "jpn", "日本語", "Japanese"],
    "fa": ["fas", "per", "pes", "Farsi", "Persian", "فارسی"],
    "nl": ["nld", "dut", "Flemish", "Vlaams", "nl-BE"],
    "ro": ["ron", "rum", "mo", "Moldavian", "Moldovan", "Română"],
    "my": ["mya", "bur", "Burmese", "Myanmar"],
    "he": ["he", "iw", "heb", "iw-IL", "עברית"],
    "jv": ["jv", "jw", "jav", "Javanese"],
    "id": ["id", "in", "ind", "Bahasa Indonesia"],
    "tl": ["tl", "fil", "tgl", "fil-PH", "Tagalog", "Filipino"],
    "no": ["no", "nb", "nor", "nob", "nb-NO", "Norsk", "Bokmål", "bokmal"],
    "nn": ["nn", "nno", "nn_NO", "Nynorsk"],
    "yi": ["yi", "ji", "yid", "ייִדיש", "יידיש"],
    "ht": ["hat", "Haitian Creole", "haitian_creole", "Haitian"],
    "haw": ["haw", "Hawaiian", "haw-US"],
    "vi": ["vie", "Tiếng Việt", "tieng viet"],
    "tr": ["tur", "TÜRKÇE", "turkce"],
    "ca": ["cat", "ca-valencia", "Valencian", "Català"],
    "ru": ["rus", "Русский", "РУССКИЙ"],
    "el": ["ell", "gre", "Ελληνικά", "ΕΛΛΗΝΙΚΆ"],
    "ar": ["ara", "arb", "ar-EG", "العربية"],
}


@pytest.mark.parametrize(
    ("spelling", "code"), [(s, code) for code, spellings in SPELLINGS.items() for s in spellings]
)
def test_every_spelling_is_one_code(spelling: str, code: str) -> None:
    assert resolve_language(spelling) == code


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
@pytest.mark.parametrize("name", ["한국어", "日本語", "Čeština", "Tiếng Việt", "हिन्दी", "বাংলা"])
def test_unicode_forms_are_equal(name: str, form: str) -> None:
    expected = {"한": "ko", "日": "ja", "Č": "cs", "T": "vi", "ह": "hi", "ব": "bn"}[name[0]]
    assert resolve_language(unicodedata.normalize(form, name)) == expected  # type: ignore[arg-type]


def test_all_of_whisper_and_nothing_else() -> None:
    codes = [resolve_language(code) for code in WHISPER.split()]
    assert len(codes) == len(set(codes)) == 100
    assert set(codes) == set(LANGUAGES)
    assert all(code in ("jw", resolve_language(code)) for code in WHISPER.split())


def test_all_of_qwen3_asr() -> None:
    assert {name: resolve_language(name) for name in QWEN3_ASR} == QWEN3_ASR


@pytest.mark.parametrize("code", LANGUAGES)
def test_code_and_english_name_lead_back(code: str) -> None:
    assert resolve_language(code) == code
    assert resolve_language(language_name(code)) == code


def test_no_spelling_stands_for_two_languages() -> None:
    from asrcli.languages import _TABLE, _fold

    spellings: dict[str, str] = {}
    for row in _TABLE.strip().splitlines():
        code, codes, names = (cell.strip() for cell in row.split("|"))
        for spelling in {code, *codes.split(), *(_fold(name) for name in names.split(","))}:
            assert spellings.setdefault(spelling, code) == code
            assert spelling


def test_languages_cannot_be_changed() -> None:
    assert LANGUAGES["ko"] == "Korean"
    assert list(LANGUAGES) == sorted(LANGUAGES)
    with pytest.raises(TypeError):
        LANGUAGES["xx"] = "Klingon"  # type: ignore[index]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "xx",
        "xxx",
        "auto",
        "None",
        "null",
        "klingon",
        "e",
        "english korean",
        "ko-",
        "-ko",
        "ko-korean",
        "ko-K",
        "ko KR x",
        "en,ko",
        "en-US-",
        "한",
        "C.UTF-8",
        "zz-KR",
        "1",
        "<|ko|>",
    ],
)
def test_unknown_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve_language(text)
    assert str(caught.value) == f"language {text!r} is unknown"
    assert caught.value.hint is not None
    assert "\n" not in str(caught.value) + caught.value.hint


def test_hint_lists_every_code_when_nothing_is_near() -> None:
    with pytest.raises(UsageError) as caught:
        resolve_language("xx")
    hint = caught.value.hint or ""
    listed = hint.removeprefix("one of: ").split(";")[0].split(", ")
    assert listed == list(LANGUAGES)


@pytest.mark.parametrize(
    ("text", "near"),
    [("Koraen", "Korean (ko)"), ("englisch", "English (en)"), ("Portugese", "Portuguese (pt)")],
)
def test_hint_names_what_is_near(text: str, near: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve_language(text)
    assert near in (caught.value.hint or "")
    assert (caught.value.hint or "").startswith("did you mean ")


def test_hint_does_not_name_one_language_twice() -> None:
    with pytest.raises(UsageError) as caught:
        resolve_language("Sinhales")  # near to both "Sinhala" and "Sinhalese"
    assert (caught.value.hint or "").count("(si)") == 1


def test_name_of_unknown_code() -> None:
    with pytest.raises(KeyError):
        language_name("iw")


def test_nothing_heavy_is_imported() -> None:
    code = "import sys, asrcli.languages; print(*{'torch', 'numpy', 'difflib'} & set(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("zh-TW", True),
        ("zh_CN", True),
        ("zh-Hans", True),
        ("zh-Hant-HK", True),
        ("zh-cmn-Hant", True),
        ("Traditional Chinese", True),
        ("simplified chinese", True),
        ("zh", False),
        ("zho", False),
        ("Chinese", False),
        ("yue", False),
        ("pt-BR", False),
    ],
)
def test_a_script_that_is_asked_for(text: str, expected: bool) -> None:
    assert states_script(text) is expected
