"""Which language is meant: codes, names and native names, resolved to one ISO 639 code.

The table holds the hundred languages that Whisper knows; those of Qwen3-ASR are among them. Codes
are from ISO 639 (parts 1, 2 and 3, with the withdrawn ones that are still in use), tags follow
BCP 47. Nothing here is heavy: the module loads in a millisecond.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from types import MappingProxyType

from asrcli.errors import UsageError

# Canonical code | further codes | English name, synonyms, native names.
_TABLE = """
af  | afr                 | Afrikaans
am  | amh                 | Amharic, አማርኛ
ar  | ara arb             | Arabic, العربية, عربي
as  | asm                 | Assamese, অসমীয়া
az  | aze azj             | Azerbaijani, Azeri, Azərbaycanca, Azərbaycan dili
ba  | bak                 | Bashkir, Башҡортса, Башҡорт теле
be  | bel                 | Belarusian, Belarusan, Belorussian, Беларуская, Беларуская мова
bg  | bul                 | Bulgarian, Български, Български език
bn  | ben                 | Bengali, Bangla, বাংলা
bo  | bod tib             | Tibetan, བོད་སྐད, བོད་ཡིག
br  | bre                 | Breton, Brezhoneg
bs  | bos                 | Bosnian, Bosanski, Босански
ca  | cat ca-valencia     | Catalan, Valencian, Català, Valencià
cs  | ces cze             | Czech, Čeština, Česky
cy  | cym wel             | Welsh, Cymraeg
da  | dan                 | Danish, Dansk
de  | deu ger             | German, Deutsch
el  | ell gre             | Greek, Modern Greek, Ελληνικά
en  | eng                 | English
es  | spa                 | Spanish, Castilian, Español, Castellano
et  | est ekk             | Estonian, Eesti, Eesti keel
eu  | eus baq             | Basque, Euskara, Euskera
fa  | fas per pes prs     | Persian, Farsi, Dari, فارسی, دری
fi  | fin                 | Finnish, Suomi
fo  | fao                 | Faroese, Føroyskt
fr  | fra fre             | French, Français
gl  | glg                 | Galician, Galego
gu  | guj                 | Gujarati, ગુજરાતી
ha  | hau                 | Hausa, هَوُسَ
haw |                     | Hawaiian, ʻŌlelo Hawaiʻi
he  | heb iw              | Hebrew, Modern Hebrew, עברית
hi  | hin                 | Hindi, हिन्दी, हिंदी
hr  | hrv scr             | Croatian, Hrvatski
ht  | hat                 | Haitian Creole, Haitian, Kreyòl ayisyen, Kreyòl
hu  | hun                 | Hungarian, Magyar
hy  | hye arm             | Armenian, Հայերեն
id  | ind in              | Indonesian, Bahasa Indonesia
is  | isl ice             | Icelandic, Íslenska
it  | ita                 | Italian, Italiano
ja  | jpn                 | Japanese, 日本語, にほんご
jv  | jav jw              | Javanese, Basa Jawa
ka  | kat geo             | Georgian, ქართული
kk  | kaz                 | Kazakh, Қазақша, Қазақ тілі
km  | khm                 | Khmer, Central Khmer, Cambodian, ខ្មែរ, ភាសាខ្មែរ
kn  | kan                 | Kannada, ಕನ್ನಡ
ko  | kor                 | Korean, 한국어, 한국말, 조선말
la  | lat                 | Latin, Latina
lb  | ltz                 | Luxembourgish, Letzeburgesch, Lëtzebuergesch
ln  | lin                 | Lingala, Lingála
lo  | lao                 | Lao, Laotian, ລາວ, ພາສາລາວ
lt  | lit                 | Lithuanian, Lietuvių, Lietuvių kalba
lv  | lav lvs             | Latvian, Latviešu, Latviešu valoda
mg  | mlg plt             | Malagasy
mi  | mri mao             | Maori, Te reo Māori
mk  | mkd mac             | Macedonian, Македонски, Македонски јазик
ml  | mal                 | Malayalam, മലയാളം
mn  | mon khk             | Mongolian, Монгол, Монгол хэл
mr  | mar                 | Marathi, मराठी
ms  | msa may zsm         | Malay, Malaysian, Bahasa Melayu, Bahasa Malaysia
mt  | mlt                 | Maltese, Malti
my  | mya bur             | Burmese, Myanmar, မြန်မာ, မြန်မာစာ, မြန်မာဘာသာ
ne  | nep npi             | Nepali, नेपाली
nl  | nld dut vls         | Dutch, Flemish, Nederlands, Vlaams
nn  | nno                 | Norwegian Nynorsk, Nynorsk, Norsk nynorsk
no  | nor nb nob          | Norwegian, Norwegian Bokmål, Bokmål, Norsk, Norsk bokmål
oc  | oci                 | Occitan, Provençal
pa  | pan                 | Punjabi, Panjabi, ਪੰਜਾਬੀ, پنجابی
pl  | pol                 | Polish, Polski
ps  | pus pbt pbu         | Pashto, Pushto, پښتو
pt  | por                 | Portuguese, Brazilian Portuguese, Português
ro  | ron rum mo mol      | Romanian, Moldavian, Moldovan, Română, Limba română
ru  | rus                 | Russian, Русский, Русский язык
sa  | san                 | Sanskrit, संस्कृतम्, संस्कृत
sd  | snd                 | Sindhi, سنڌي, सिन्धी
si  | sin                 | Sinhala, Sinhalese, සිංහල
sk  | slk slo             | Slovak, Slovenčina, Slovensky
sl  | slv                 | Slovenian, Slovene, Slovenščina
sn  | sna                 | Shona, chiShona
so  | som                 | Somali, Soomaali, Af Soomaali
sq  | sqi alb als         | Albanian, Shqip
sr  | srp scc             | Serbian, Srpski, Српски
su  | sun                 | Sundanese, Basa Sunda
sv  | swe                 | Swedish, Svenska
sw  | swa swh             | Swahili, Kiswahili
ta  | tam                 | Tamil, தமிழ்
te  | tel                 | Telugu, తెలుగు
tg  | tgk                 | Tajik, Tajiki, Тоҷикӣ
th  | tha                 | Thai, ไทย, ภาษาไทย
tk  | tuk                 | Turkmen, Türkmençe, Türkmen dili
tl  | tgl fil             | Tagalog, Filipino, Pilipino, Wikang Filipino
tr  | tur                 | Turkish, Türkçe
tt  | tat                 | Tatar, Татарча, Татар теле
uk  | ukr                 | Ukrainian, Українська, Українська мова
ur  | urd                 | Urdu, اردو
uz  | uzb uzn             | Uzbek, Oʻzbekcha, O'zbekcha, Oʻzbek tili
vi  | vie                 | Vietnamese, Tiếng Việt
yi  | yid ydd ji          | Yiddish, ייִדיש, אידיש
yo  | yor                 | Yoruba, Yorùbá
yue | zh-yue              | Cantonese, Yue, Yue Chinese, 粵語, 粤语, 廣東話, 广东话, 廣州話
zh  | zho chi cmn zh-cmn  | Chinese, Mandarin, Mandarin Chinese, Simplified Chinese, \
Traditional Chinese, 中文, 汉语, 漢語, 普通话, 普通話, 国语, 國語, 华语, 華語, 官话
"""

# What may follow a code in a tag: a script, a region and numbered variants ("zh-hant-tw",
# "de-1996"), or the encoding of a POSIX locale ("ko_kr.utf-8"). Anything else is not skipped, so
# that no word is taken for a language that it does not mean.
_SUBTAGS = re.compile(r"(-[a-z]{4})?(-(?:[a-z]{2}|\d{3}))?(-\d[a-z0-9]{3})*(\.[a-z0-9-]+)?")
_SCRIPTS = {"simplified chinese", "traditional chinese"}
_SCRIPT_TAG = re.compile(r"(zh|zho|chi|cmn)( cmn)? (hans|hant|cn|sg|tw|hk|mo)\b")
_MARKS = re.compile("[\u0300-\u036f\u0591-\u05c7\u064b-\u0652]")  # Latin, Hebrew, Arabic


def _read_table() -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Code to English name, every code to its canonical one, every folded name to its code."""
    english: dict[str, str] = {}
    codes: dict[str, str] = {}
    names: dict[str, str] = {}
    for row in _TABLE.strip().splitlines():
        code, further_codes, all_names = (cell.strip() for cell in row.split("|"))
        codes.update(dict.fromkeys([code, *further_codes.split()], code))
        listed = [name.strip() for name in all_names.split(",")]
        english[code] = listed[0]
        names.update((_fold(name), code) for name in listed)
    return english, codes, names


def _fold(text: str) -> str:
    """Text without case, accents and surplus white space: "Español" and "ESPANOL" are equal."""
    decomposed = unicodedata.normalize("NFKD", text.replace("_", " ")).casefold()
    return " ".join(_MARKS.sub("", decomposed).split())


_ENGLISH, _CODES, _NAMES = _read_table()

LANGUAGES: Mapping[str, str] = MappingProxyType(_ENGLISH)
"""ISO 639 code to English name, for example "ko" to "Korean"; sorted by code."""


def resolve_language(text: str) -> str:
    """The canonical code of the language that ``text`` names, in any case.

    Args:
        text: an ISO 639 code ("ko", "kor", "ger"), one with script or region ("zh-Hant", "pt_BR"),
            an English name or synonym ("Korean", "Farsi") or a native name ("한국어").

    Returns:
        A key of ``LANGUAGES``: the ISO 639-1 code where there is one, else the ISO 639-3 code.

    Raises:
        UsageError: ``text`` is empty or names no known language; its hint says what there is.
    """
    code = _find_tag(text) or _NAMES.get(_fold(text))
    if code is None:
        raise UsageError(f"language {text!r} is unknown", hint=_hint(text))
    return code


def states_script(text: str) -> bool:
    """Whether ``text`` says how Chinese is to be written, besides that it is: "zh-TW", "zh-Hans".

    Models are told the language alone.
    """
    folded = _fold(text.strip().replace("-", " "))
    return folded in _SCRIPTS or bool(_SCRIPT_TAG.match(folded))


def language_name(code: str) -> str:
    """The English name of a canonical code: "Korean" for "ko".

    Raises:
        KeyError: ``code`` is not in ``LANGUAGES``.
    """
    return LANGUAGES[code]


def _find_tag(text: str) -> str | None:
    """The canonical code of a BCP 47 tag or POSIX locale; None where the text is neither."""
    tag = text.strip().lower().replace("_", "-")
    start = tag.split(".")[0].split("-")
    for num_parts in (2, 1):  # "zh-yue" before "zh"
        prefix = "-".join(start[:num_parts])
        if prefix in _CODES and _SUBTAGS.fullmatch(tag[len(prefix) :]):
            return _CODES[prefix]
    return None


def _hint(text: str) -> str:
    import difflib  # only here: it takes longer to load than all of this module

    folded = _fold(text)
    # Among two and three letters everything is near to something, so only names are compared.
    near = difflib.get_close_matches(folded, _NAMES, n=3, cutoff=0.7) if len(folded) > 3 else []
    if near:
        codes = dict.fromkeys(_NAMES[name] for name in near)
        return "did you mean " + " or ".join(f"{LANGUAGES[c]} ({c})" for c in codes) + "?"
    return f"one of: {', '.join(LANGUAGES)}; names such as Korean or 한국어 are understood too"
