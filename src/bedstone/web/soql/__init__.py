"""The SOQL workbench: editor, checks, completion, rows."""
