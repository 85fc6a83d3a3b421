"""Words that people use for objects and fields and that a describe does not have."""

import re

from bedstone.salesforce.graph.folding import WORD_SIGNS, fold

# Other words for an object, by its name.
OBJECT_WORDS: dict[str, tuple[str, ...]] = {
    "Account": (
        *("customer", "client", "company", "organisation", "organization"),
        *("vendor", "partner", "firm", "business"),
    ),
    "Opportunity": ("deal", "opp", "pipeline", "sale"),
    "Case": ("ticket", "issue", "incident", "problem", "request", "complaint"),
    "Lead": ("prospect", "enquiry", "inquiry"),
    "Contact": ("person", "people"),
    "Product2": ("product", "item", "sku", "goods"),
    "User": ("rep", "employee", "colleague", "salesperson", "agent", "staff"),
    "Task": ("to-do", "todo", "activity"),
    "Event": ("meeting", "appointment", "calendar entry"),
    "Contract": ("agreement",),
    "Campaign": ("marketing", "mailing"),
    "Quote": ("quotation", "offer", "proposal"),
    "Asset": ("installed product",),
    "Pricebook2": ("price book", "price list"),
    "PricebookEntry": ("price", "list price"),
    "OpportunityLineItem": ("opportunity product", "deal item"),
    "OpportunityContactRole": ("contact role",),
    "CampaignMember": ("campaign member", "member"),
    "CaseComment": ("case comment", "comment"),
    "Knowledge__kav": ("article", "knowledge article"),
    "UserRole": ("role",),
    "Order": ("purchase",),
}
# The words of a field name, by what people say instead.
FIELD_WORDS: dict[str, tuple[str, ...]] = {
    "turnover": ("annual", "revenue"),
    "income": ("annual", "revenue"),
    "headcount": ("employees",),
    "staff": ("employees",),
    "workforce": ("employees",),
    "mail": ("email",),
    "telephone": ("phone",),
    "cell": ("mobile", "phone"),
    "cellphone": ("mobile", "phone"),
    "zip": ("postal", "code"),
    "postcode": ("postal", "code"),
    "salesperson": ("owner",),
    "rep": ("owner",),
    "responsible": ("owner",),
    "value": ("amount",),
    "worth": ("amount",),
    "size": ("amount", "employees"),
    "sum": ("amount",),
    "birthday": ("birthdate",),
    "homepage": ("website",),
    "url": ("website",),
    "web": ("website",),
    "surname": ("last", "name"),
    "job": ("title",),
    "position": ("title",),
    "boss": ("reports", "to"),
    "manager": ("reports", "to", "manager"),
    "chance": ("probability",),
    "likelihood": ("probability",),
    "deadline": ("due", "date", "close"),
    "due": ("activity", "date"),
    "duedate": ("activity", "date"),
    "severity": ("priority",),
    "urgency": ("priority",),
    "origin": ("source",),
    "sector": ("industry",),
    "branch": ("industry",),
    "town": ("city",),
    "address": ("street", "city", "address"),
    "price": ("unit", "price"),
    "cost": ("price", "amount"),
    "notes": ("description",),
    "details": ("description",),
    "heading": ("subject",),
    "topic": ("subject",),
    "phase": ("stage",),
    "state": ("status", "state"),
    "created": ("created", "date"),
    "opened": ("created", "date"),
    "modified": ("last", "modified", "date"),
    "updated": ("last", "modified", "date"),
    "closed": ("closed", "date"),
    "parent": ("parent",),
    "serial": ("serial", "number"),
}
STOP_WORDS = frozenset(
    "a an and any are as at be been by can do does each every everything for from get give has have having how i in "  # noqa: SIM905
    "is it its list me my of on one or our please records show that the their them there these they this those to "
    "us want was we were what when where which who whose will with you your all find fetch display select return "
    "tell me related s ids did need see if also both currently now only just across within happening taking place "
    "associated linked attached belong yet came its work works along".split()
)
ASCII_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")  # faster, and almost all names are
WORD = re.compile(rf"(?:(?!_)[{WORD_SIGNS}])+(?:'[a-z]+)?")


def plain_words(text: str) -> list[str]:
    """Return the words of a text, folded and singular."""
    pattern = ASCII_WORD if text.isascii() else WORD
    return [singular(word) for word in pattern.findall(fold(text))]


def singular(word: str) -> str:
    """Return a word without its plural ending."""
    if len(word) > 4 and word.endswith("ies"):  # noqa: PLR2004
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "xes", "ches", "shes", "uses")):  # noqa: PLR2004
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):  # noqa: PLR2004
        return word[:-1]
    return word
