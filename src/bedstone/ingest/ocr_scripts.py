"""Which language data recognizes which script, and what to install for a script that has none."""

from collections.abc import Collection, Mapping

MIN_SCRIPT_CONFIDENCE = 0.5  # of the engine, whose scale has no end; text in Latin letters has 1 to 40
# From the scripts that the engine names to the codes of languages written in them, the best first.
LANGUAGES: Mapping[str, tuple[str, ...]] = {
    "Arabic": ("ara", "fas", "urd"),
    "Armenian": ("hye",),
    "Bengali": ("ben",),
    "Cyrillic": ("rus", "ukr", "bul", "srp", "bel", "mkd"),
    "Devanagari": ("hin", "mar", "nep", "san"),
    "Ethiopic": ("amh",),
    "Georgian": ("kat",),
    "Greek": ("ell", "grc"),
    "Gujarati": ("guj",),
    "Gurmukhi": ("pan",),
    "Han": ("chi_sim", "chi_tra"),
    "Hangul": ("kor",),
    "Hebrew": ("heb",),
    "Japanese": ("jpn",),
    "Kannada": ("kan",),
    "Khmer": ("khm",),
    "Korean": ("kor",),
    "Lao": ("lao",),
    "Malayalam": ("mal",),
    "Myanmar": ("mya",),
    "Sinhala": ("sin",),
    "Tamil": ("tam",),
    "Telugu": ("tel",),
    "Thai": ("tha",),
    "Tibetan": ("bod",),
}
# Languages that share a script: right where the settings name them, else they turn one text into another.
RELATED: Mapping[str, tuple[str, ...]] = {"Han": ("jpn", "kor"), "Japanese": ("chi_sim", "chi_tra")}
# Languages whose data comes as a package, by the extra that installs it.
EXTRAS: Mapping[str, str] = {"deu": "ocr-german", "jpn": "ocr-japanese"}


def choose_languages(script: str, configured: str, available: Collection[str]) -> str:
    """Return the languages to recognize a page with: those of the settings, or data of the page's script."""
    known = LANGUAGES.get(script, ())
    covering = (*known, *RELATED.get(script, ()))
    if not known or any(language in covering for language in configured.split("+")):
        return configured
    found = next((language for language in known if language in available), None)
    whole = f"script/{script}"
    return found or (whole if whole in available else configured)


def is_missing(script: str, languages: str) -> bool:
    """Return whether none of the languages is written in a script."""
    known = LANGUAGES.get(script, ())
    return (
        bool(known) and not any(language in known for language in languages.split("+")) and "script/" not in languages
    )


def explain_missing(script: str) -> str:
    """Return what to install so that a script is recognized."""
    language = LANGUAGES[script][0]
    folder = f"set ocr.data_path to a folder with {language}.traineddata, eng.traineddata and osd.traineddata"
    extra = EXTRAS.get(language)
    advice = f"Install it with: pip install 'bedstone[{extra}]'; or {folder}" if extra else folder.capitalize()
    return f"A page seems to be in {script} script, which OCR has no language data for. {advice}."
