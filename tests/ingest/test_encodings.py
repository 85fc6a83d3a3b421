"""Text in legacy encodings, which no file declares."""

import pytest

from bedstone.ingest.encodings import decode
from bedstone.ingest.extraction import Notes

TEXTS = {
    "cp1252": [
        "Größe der Bienenstöcke",
        "Prüfung für Müller",
        "Café à la crème, déjà vu",
        "año nuevo, niño pequeño",
        "Smørrebrød på dansk",
        "price: 5 € “quoted”",
        "Die Kündigungsfrist beträgt drei Monate. Für Änderungen gilt die Schriftform.",
    ],
    "cp1250": ["Příliš žluťoučký kůň", "Zażółć gęślą jaźń"],
    "cp1251": ["Срок уведомления составляет три месяца.", "Счёт № 2026-1037 от 14 января"],
    "cp1253": ["Καλημέρα κόσμε"],
    "cp1256": ["مرحبا بالعالم"],
    "cp932": [
        "養蜂家の人数",
        "これは日本語の文章です。",
        "請求書番号 2026-1037",
        "会議は来週の月曜日に行われます。",
    ],
    "gb18030": ["养蜂人的数量", "这是中文文本。", "本合同的通知期为三个月,至日历季度末为止。"],
    "cp949": ["안녕하세요", "통지 기간은 3개월입니다."],
    "big5": ["養蜂人的數量", "這是中文文本。"],
}


@pytest.mark.parametrize(("encoding", "text"), [(name, text) for name, texts in TEXTS.items() for text in texts])
def test_short_text_in_a_legacy_encoding_is_read_as_written(encoding: str, text: str) -> None:
    notes = Notes()
    assert decode(text.encode(encoding), notes) == text
    assert notes.warnings[0].startswith("Not UTF-8; decoded as ")


def test_utf_8_is_never_guessed() -> None:
    notes = Notes()
    text = "Größe, 養蜂家, Счёт"
    assert decode(text.encode(), notes) == text
    assert notes.warnings == []
