"""Records of sales: products and prices, campaigns, leads, opportunities, orders, contracts."""

from typing import Any

from bedstone.salesforce.demo_org.content import people
from bedstone.salesforce.demo_org.content.recipes import Recipes, day


def add_sales(recipes: Recipes) -> None:
    chance = recipes.chance
    standard = recipes.add("Pricebook2", Name="Standard Price Book", IsActive=1, IsStandard=1)
    dealer = recipes.add("Pricebook2", Name="Dealer Prices", IsActive=1, IsStandard=0)
    entries = _add_prices(recipes, standard, dealer)
    _add_campaigns(recipes)
    for _ in range(180):
        _add_lead(recipes)
    for number in range(320):
        _add_opportunity(recipes, number, dealer, entries)
    for number in range(90):
        _add_order(recipes, number, standard, entries)
    for number in range(60):
        start = chance.randint(10, 800)
        recipes.add(
            "Contract",
            AccountId=recipes.pick("Account"),
            Status=chance.choice(("Draft", "Activated")),
            StartDate=day(start),
            EndDate=day(start - 365),
            ContractTerm=12,
            ContractNumber=f"{number + 100:08}",
        )


def _add_prices(recipes: Recipes, standard: str, dealer: str) -> list[Any]:
    products = [
        ("Kestrel Haul", "KH", "Bikes", 4890.0),
        ("Kestrel Barrow", "KB", "Bikes", 5690.0),
        ("Kestrel Porter", "KP", "Bikes", 8990.0),
    ]
    products += [
        (name, code, "Batteries" if kind == "Battery" else "Accessories", price)
        for name, code, kind, price in people.PARTS
    ]
    products += [("Inspection", "SRV-1", "Services", 89.0), ("Fleet service", "SRV-9", "Services", 1290.0)]
    entries = []
    for name, code, family, price in products:
        product = recipes.add(
            "Product2", Name=name, ProductCode=code, Family=family, IsActive=1, Description=f"{name} ({code})"
        )
        for book, share in ((standard, 1.0), (dealer, 0.8)):
            entry = recipes.add(
                "PricebookEntry",
                Name=name,
                Pricebook2Id=book,
                Product2Id=product,
                UnitPrice=round(price * share, 2),
                IsActive=1,
                ProductCode=code,
                UseStandardPrice=0,
            )
            entries.append((entry, product, round(price * share, 2), name, code))
    return entries


def _add_campaigns(recipes: Recipes) -> None:
    chance = recipes.chance
    for name in (
        "Spring fair",
        "Courier webinar",
        "Winter service week",
        "Kindergarten mailing",
        "Test ride tour",
        "Dealer day",
    ):
        started = chance.randint(20, 700)
        recipes.add(
            "Campaign",
            Name=name,
            Type=chance.choice(("Webinar", "Email", "Trade Show", "Conference")),
            IsActive=1,
            Status=chance.choice(("Planned", "In Progress", "Completed")),
            StartDate=day(started),
            EndDate=day(started - 10),
            BudgetedCost=float(chance.randint(1, 40)) * 500,
            NumberSent=float(chance.randint(50, 4000)),
        )


def _add_lead(recipes: Recipes) -> None:
    chance = recipes.chance
    first, last = chance.choice(people.FIRST_NAMES), chance.choice(people.LAST_NAMES)
    company = f"{chance.choice(people.COMPANY_FIRST)} {chance.choice(people.COMPANY_LAST)}"
    lead = recipes.add(
        "Lead",
        FirstName=first,
        LastName=last,
        Name=f"{first} {last}",
        Company=company,
        Status=chance.choice(
            ("Open - Not Contacted", "Working - Contacted", "Closed - Converted", "Closed - Not Converted")
        ),
        LeadSource=chance.choice(("Web", "Phone Inquiry", "Partner Referral", "Other")),
        Email=f"lead{len(recipes.ids.get('Lead', []))}@example.org",
        Rating=chance.choice(("Hot", "Warm", "Cold", None)),
        City=chance.choice(people.CITIES)[0],
        Country=chance.choice(people.CITIES)[1],
    )
    if chance.random() < 0.6:
        recipes.add(
            "CampaignMember",
            CampaignId=recipes.pick("Campaign"),
            LeadId=lead,
            Status=chance.choice(("Sent", "Responded")),
        )


STAGES = (
    ("Prospecting", 10, "Pipeline"),
    ("Qualification", 10, "Pipeline"),
    ("Needs Analysis", 20, "Pipeline"),
    ("Value Proposition", 50, "Pipeline"),
    ("Proposal/Price Quote", 75, "Pipeline"),
    ("Negotiation/Review", 90, "Pipeline"),
    ("Closed Won", 100, "Closed"),
    ("Closed Lost", 0, "Omitted"),
)


def _add_opportunity(recipes: Recipes, number: int, book: str, entries: list[Any]) -> None:
    chance = recipes.chance
    stage, probability, forecast = chance.choice(STAGES)
    lines = [(chance.choice(entries), chance.randint(1, 12)) for _ in range(chance.choice((1, 1, 2, 3)))]
    amount = round(sum(entry[2] * count for entry, count in lines), 2)
    account = recipes.pick("Account")
    closes = chance.randint(-180, 600)
    opportunity = recipes.add(
        "Opportunity",
        days=closes + chance.randint(20, 200),
        AccountId=account,
        Name=f"{chance.choice(('Fleet', 'Renewal', 'Pilot', 'Expansion', 'Spare parts'))} {number + 1}",
        StageName=stage,
        Probability=float(probability),
        ForecastCategory=forecast,
        ForecastCategoryName=forecast,
        Amount=amount if number % 9 else None,
        CloseDate=day(closes),
        IsClosed=int(stage.startswith("Closed")),
        IsWon=int(stage == "Closed Won"),
        Type=chance.choice(("New Customer", "Existing Customer - Upgrade", None)),
        LeadSource=chance.choice(("Web", "Partner Referral", "Other", None)),
        Pricebook2Id=book,
        CampaignId=recipes.pick("Campaign") if number % 6 == 0 else None,
        HasOpportunityLineItem=1,
        NextStep="Call back" if number % 4 == 0 else None,
    )
    for (entry, product, price, name, code), count in lines:
        recipes.add(
            "OpportunityLineItem",
            OpportunityId=opportunity,
            PricebookEntryId=entry,
            Product2Id=product,
            Quantity=float(count),
            UnitPrice=price,
            TotalPrice=round(price * count, 2),
            ListPrice=price,
            Name=name,
            ProductCode=code,
        )
    if chance.random() < 0.5:
        recipes.add(
            "OpportunityContactRole",
            OpportunityId=opportunity,
            ContactId=recipes.pick("Contact"),
            IsPrimary=1,
            Role=chance.choice(("Decision Maker", "Evaluator", "Business User")),
        )


def _add_order(recipes: Recipes, number: int, book: str, entries: list[Any]) -> None:
    chance = recipes.chance
    ordered = chance.randint(5, 500)
    order = recipes.add(
        "Order",
        AccountId=recipes.pick("Account"),
        EffectiveDate=day(ordered),
        Status=chance.choice(("Draft", "Activated")),
        Pricebook2Id=book,
        OrderNumber=f"{number + 100:08}",
        TotalAmount=0.0,
    )
    for entry, product, price, _, _ in chance.sample(entries, chance.choice((1, 2, 3))):
        recipes.add(
            "OrderItem",
            OrderId=order,
            PricebookEntryId=entry,
            Product2Id=product,
            Quantity=float(chance.randint(1, 5)),
            UnitPrice=price,
            OrderItemNumber=f"{len(recipes.ids.get('OrderItem', [])) + 1:010}",
        )
