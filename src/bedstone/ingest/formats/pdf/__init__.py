"""PDF: lines from pdfium, structure from where they stand, OCR for pages that are pictures."""
