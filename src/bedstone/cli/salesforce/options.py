"""Options that several Salesforce commands share."""

import click

DATA_FLAGS = {"--data-dir": "data_dir"}
ORG_FLAGS = {"--org": "salesforce.org", **DATA_FLAGS}
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
