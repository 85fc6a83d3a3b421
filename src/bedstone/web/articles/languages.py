"""The names of languages, each in itself, by the codes of Salesforce."""

NAMES = {
    "ar": "العربية",
    "cs": "Čeština",
    "da": "Dansk",
    "de": "Deutsch",
    "el": "Ελληνικά",
    "en": "English",
    "en_gb": "English (UK)",
    "es": "Español",
    "es_mx": "Español (México)",
    "fi": "Suomi",
    "fr": "Français",
    "he": "עברית",
    "hu": "Magyar",
    "in": "Bahasa Indonesia",
    "it": "Italiano",
    "iw": "עברית",
    "ja": "日本語",
    "ko": "한국어",
    "nl": "Nederlands",
    "no": "Norsk",
    "pl": "Polski",
    "pt": "Português",
    "pt_br": "Português (Brasil)",
    "ro": "Română",
    "ru": "Русский",
    "sv": "Svenska",
    "th": "ไทย",
    "tr": "Türkçe",
    "uk": "Українська",
    "vi": "Tiếng Việt",
    "zh_cn": "简体中文",
    "zh_tw": "繁體中文",
}


def language_name(code: str | None) -> str:
    """Return the name of a language; the code itself for one without a name here."""
    key = (code or "").replace("-", "_").lower()
    return NAMES.get(key) or NAMES.get(key.partition("_")[0]) or code or ""


def html_language(code: str | None) -> str:
    """Return a code as HTML writes it: `en-US`."""
    return (code or "").replace("_", "-")
