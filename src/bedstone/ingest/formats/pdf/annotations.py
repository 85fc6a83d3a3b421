"""Read what stands on a page outside its content: values of form fields, and comments."""

from ctypes import c_ushort
from typing import Any

import pypdfium2.raw as pdfium

MAX_ANNOTATIONS = 5_000  # of one page
# Kinds whose content a viewer shows; those of links and media are technical.
COMMENTS = {
    pdfium.FPDF_ANNOT_TEXT,
    pdfium.FPDF_ANNOT_FREETEXT,
    pdfium.FPDF_ANNOT_HIGHLIGHT,
    pdfium.FPDF_ANNOT_UNDERLINE,
    pdfium.FPDF_ANNOT_SQUIGGLY,
    pdfium.FPDF_ANNOT_STRIKEOUT,
    pdfium.FPDF_ANNOT_STAMP,
    pdfium.FPDF_ANNOT_CARET,
}
EMPTY_VALUES = {"", "Off"}  # the second one of a box that is not ticked


def page_annotations(page: Any, form: Any) -> tuple[list[str], list[str], int]:
    """Return the filled fields as `name: value`, the comments, and how many annotations exceed the limit."""
    total = pdfium.FPDFPage_GetAnnotCount(page.raw)
    fields: dict[str, None] = {}
    comments: dict[str, None] = {}
    for index in range(min(total, MAX_ANNOTATIONS)):
        annotation = pdfium.FPDFPage_GetAnnot(page.raw, index)
        if not annotation:
            continue
        try:
            kind = pdfium.FPDFAnnot_GetSubtype(annotation)
            if kind == pdfium.FPDF_ANNOT_WIDGET and form is not None:
                fields[_field(annotation, form)] = None
            elif kind in COMMENTS:
                comments[_string(pdfium.FPDFAnnot_GetStringValue, annotation, b"Contents")] = None
        finally:
            pdfium.FPDFPage_CloseAnnot(annotation)
    return [text for text in fields if text], [text for text in comments if text], max(0, total - MAX_ANNOTATIONS)


def _field(annotation: Any, form: Any) -> str:
    value = _string(pdfium.FPDFAnnot_GetFormFieldValue, form.raw, annotation)
    if value in EMPTY_VALUES:
        return ""
    name = _string(pdfium.FPDFAnnot_GetFormFieldAlternateName, form.raw, annotation)
    name = name or _string(pdfium.FPDFAnnot_GetFormFieldName, form.raw, annotation)
    return f"{name}: {value}" if name else value


def _string(function: Any, *arguments: Any) -> str:
    """Return a string that pdfium copies into a buffer of the size it asks for."""
    size = function(*arguments, None, 0)
    if size <= 2:  # noqa: PLR2004 - the end of the string alone
        return ""
    buffer = (c_ushort * (size // 2))()
    function(*arguments, buffer, size)
    return " ".join(bytes(buffer).decode("utf-16-le", "replace").rstrip("\0").split())
