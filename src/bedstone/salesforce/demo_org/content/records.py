"""Some five thousand linked records, the same every time: made from a seed and recipes, no two runs differ."""

import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from bedstone.salesforce.demo_org.content import people
from bedstone.salesforce.demo_org.content.articles import add_articles
from bedstone.salesforce.demo_org.content.objects import COLOURS, MODELS
from bedstone.salesforce.demo_org.dates import stored_moment
from bedstone.salesforce.demo_org.schema import ObjectType, Schema

SEED = 20_260_101
NOW = datetime(2026, 6, 15, 9, 0, tzinfo=UTC)
COMPANY = "Kestrel Cycles"
Insert = Callable[[str, Mapping[str, Any]], str]


class Recipes:
    """Makes records in an order in which whatever they point to is there."""

    def __init__(self, schema: Schema, insert: Insert) -> None:
        self._schema = schema
        self._insert = insert
        self.chance = random.Random(SEED)  # noqa: S311 - invented records
        self.ids: dict[str, list[str]] = {}
        self.users: list[str] = []

    def add(self, name: str, *, days: float | None = None, **values: Any) -> str:
        """A record; it was made so many days ago."""
        item = self._schema.get(name)
        assert item is not None, name
        record = self._stamped(item, values, days)
        record_id = self._insert(name, {key: value for key, value in record.items() if item.field(key)})
        self.ids.setdefault(name, []).append(record_id)
        return record_id

    def pick(self, name: str) -> str:
        """Any record of an object."""
        return self.chance.choice(self.ids[name])

    def _stamped(self, item: ObjectType, values: dict[str, Any], days: float | None) -> dict[str, Any]:
        made = NOW - timedelta(days=self.chance.uniform(1, 900) if days is None else days)
        changed = min(made + timedelta(days=self.chance.uniform(0, 40)), NOW)
        user = self.chance.choice(self.users) if self.users else None
        stamps = {
            "CreatedDate": stored_moment(made),
            "LastModifiedDate": stored_moment(changed),
            "SystemModstamp": stored_moment(changed),
            "CreatedById": user,
            "LastModifiedById": user,
            "OwnerId": user,
        }
        defaults = {
            field.name: field.values[0]
            for field in item.fields
            if field.type == "picklist" and field.values and not field.nillable
        }
        return defaults | stamps | values


def day(moment: datetime | float) -> str:
    """A date so many days ago, or of a moment."""
    return (NOW - timedelta(days=moment) if isinstance(moment, int | float) else moment).date().isoformat()


def fill(schema: Schema, insert: Insert) -> None:
    """Everything."""
    made = Recipes(schema, insert)
    _company(made)
    _accounts(made)
    _sales(made)
    _service(made)
    _bikes(made)
    _rest(made)
    add_articles(made.add, made.users, made.chance)
    for item in schema.objects.values():
        for kind in item.record_types:
            facts = {"Name": kind.label, "DeveloperName": kind.developer_name, "SobjectType": item.name}
            made.add("RecordType", days=900, Id=kind.id, IsActive=1, **facts)


def _company(made: Recipes) -> None:
    made.add(
        "Organization",
        Name=COMPANY,
        OrganizationType="Developer Edition",
        InstanceName="DEMO1",
        IsSandbox=0,
        City="Hamburg",
        Country="Germany",
        DefaultLocaleSidKey="en_US",
        TimeZoneSidKey="America/Los_Angeles",
        LanguageLocaleKey="en_US",
        FiscalYearStartMonth=1,
        UsesStartDateAsFiscalYearName=0,
    )
    for name in ("System Administrator", "Standard User", "Read Only"):
        made.add("Profile", Name=name, Description=f"{name} of {COMPANY}")
    roles = [made.add("UserRole", Name="CEO", DeveloperName="CEO")]
    for name in ("Sales", "Service", "Workshops", "Finance"):
        roles.append(made.add("UserRole", Name=name, DeveloperName=name, ParentRoleId=roles[0]))
    for number in range(24):
        first, last = people.FIRST_NAMES[number * 2], people.LAST_NAMES[number * 2 + 1]
        username = (
            "admin@kestrel.example" if number == 0 else f"{first}.{last}@kestrel.example".lower().replace("'", "")
        )
        made.users.append(
            made.add(
                "User",
                days=900,
                Username=username,
                FirstName=first,
                LastName=last,
                Name=f"{first} {last}",
                Email=username,
                Alias=(first[0] + last)[:8].lower(),
                CommunityNickname=f"{first}{number}",
                IsActive=int(number % 9 != 8),
                ProfileId=made.ids["Profile"][0 if number == 0 else 1],
                UserRoleId=roles[number % len(roles)],
                UserType="Standard",
                TimeZoneSidKey="America/Los_Angeles",
                LocaleSidKey="en_US",
                LanguageLocaleKey="en_US",
                EmailEncodingKey="UTF-8",
                Department=("Sales", "Service", "Finance")[number % 3],
                ManagerId=made.users[0] if number else None,
            )
        )
    for name, kind in (("Service Queue", "Queue"), ("Sales Queue", "Queue"), ("All Workshops", "Regular")):
        group = made.add("Group", Name=name, DeveloperName=name.replace(" ", "_"), Type=kind)
        made.add("QueueSobject", QueueId=group, SobjectType="Case" if "Service" in name else "Lead")
        for user in made.chance.sample(made.users, 4):
            made.add("GroupMember", GroupId=group, UserOrGroupId=user)


def _address(made: Recipes, prefix: str) -> dict[str, Any]:
    city, country, _, latitude, longitude = made.chance.choice(people.CITIES)
    return {
        f"{prefix}Street": f"{made.chance.choice(people.STREETS)} {made.chance.randint(1, 180)}",
        f"{prefix}City": city,
        f"{prefix}PostalCode": str(made.chance.randint(1000, 99999)),
        f"{prefix}Country": country,
        f"{prefix}Latitude": round(latitude + made.chance.uniform(-0.1, 0.1), 4),
        f"{prefix}Longitude": round(longitude + made.chance.uniform(-0.1, 0.1), 4),
    }


def _accounts(made: Recipes) -> None:
    chance = made.chance
    kinds = ("Customer - Direct", "Customer - Channel", "Prospect", "Channel Partner / Reseller")
    industries = (
        "Transportation",
        "Retail",
        "Food & Beverage",
        "Healthcare",
        "Education",
        "Energy",
        "Insurance",
        "Banking",
    )
    names = [f"{first} {last}" for first in people.COMPANY_FIRST for last in chance.sample(people.COMPANY_LAST, 6)]
    special = [
        "O'Connor's Bikes",
        "Björk & Søn",
        'The "Quick" Courier',
        "100% Cargo",
        "Back\\slash Ltd",
        "名古屋自転車",
        "Müller_Räder",
    ]
    for number, name in enumerate([*special, *names[:233]]):
        account = made.add(
            "Account",
            Name=name,
            Type=chance.choice(kinds),
            Industry=chance.choice(industries) if number % 7 else None,
            AnnualRevenue=float(chance.randint(50, 90_000)) * 1000 if number % 5 else None,
            NumberOfEmployees=chance.randint(2, 4000) if number % 4 else None,
            Phone=f"+49 40 {chance.randint(100000, 999999)}",
            Website=f"https://{''.join(sign for sign in name.lower() if sign.isascii() and sign.isalnum()) or 'shop'}.example",
            Rating=chance.choice(("Hot", "Warm", "Cold", None)),
            AccountSource=chance.choice(("Web", "Partner Referral", "Other", None)),
            ParentId=made.pick("Account") if number > 40 and number % 11 == 0 else None,
            Description=f"{name} in the demo org." if number % 3 == 0 else None,
            **_address(made, "Billing"),
        )
        for _ in range(chance.choice((1, 1, 2, 3))):
            _contact(made, account)


def _contact(made: Recipes, account: str | None) -> str:
    chance = made.chance
    first, last = chance.choice(people.FIRST_NAMES), chance.choice(people.LAST_NAMES)
    plain = "".join(sign for sign in f"{first}.{last}".lower() if sign.isascii() and (sign.isalnum() or sign == "."))
    return made.add(
        "Contact",
        FirstName=first,
        LastName=last,
        Name=f"{first} {last}",
        AccountId=account,
        Email=f"{plain}@example.com" if chance.random() > 0.1 else None,
        Phone=f"+49 170 {chance.randint(1000000, 9999999)}" if chance.random() > 0.2 else None,
        Title=chance.choice(people.JOB_TITLES),
        Department=chance.choice(("Operations", "Finance", "Purchasing", None)),
        Birthdate=day(chance.randint(20 * 365, 60 * 365)) if chance.random() > 0.6 else None,
        LeadSource=chance.choice(("Web", "Phone Inquiry", "Partner Referral", "Other", None)),
        HasOptedOutOfEmail=int(chance.random() < 0.1),
        **_address(made, "Mailing"),
    )


def _sales(made: Recipes) -> None:
    chance = made.chance
    standard = made.add("Pricebook2", Name="Standard Price Book", IsActive=1, IsStandard=1)
    dealer = made.add("Pricebook2", Name="Dealer Prices", IsActive=1, IsStandard=0)
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
        product = made.add(
            "Product2", Name=name, ProductCode=code, Family=family, IsActive=1, Description=f"{name} ({code})"
        )
        for book, share in ((standard, 1.0), (dealer, 0.8)):
            entry = made.add(
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
    for name in (
        "Spring fair",
        "Courier webinar",
        "Winter service week",
        "Kindergarten mailing",
        "Test ride tour",
        "Dealer day",
    ):
        started = chance.randint(20, 700)
        made.add(
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
    for _ in range(180):
        _lead(made)
    for number in range(320):
        _opportunity(made, number, dealer, entries)
    for number in range(90):
        _order(made, number, standard, entries)
    for number in range(60):
        start = chance.randint(10, 800)
        made.add(
            "Contract",
            AccountId=made.pick("Account"),
            Status=chance.choice(("Draft", "Activated")),
            StartDate=day(start),
            EndDate=day(start - 365),
            ContractTerm=12,
            ContractNumber=f"{number + 100:08}",
        )


def _lead(made: Recipes) -> None:
    chance = made.chance
    first, last = chance.choice(people.FIRST_NAMES), chance.choice(people.LAST_NAMES)
    company = f"{chance.choice(people.COMPANY_FIRST)} {chance.choice(people.COMPANY_LAST)}"
    lead = made.add(
        "Lead",
        FirstName=first,
        LastName=last,
        Name=f"{first} {last}",
        Company=company,
        Status=chance.choice(
            ("Open - Not Contacted", "Working - Contacted", "Closed - Converted", "Closed - Not Converted")
        ),
        LeadSource=chance.choice(("Web", "Phone Inquiry", "Partner Referral", "Other")),
        Email=f"lead{len(made.ids.get('Lead', []))}@example.org",
        Rating=chance.choice(("Hot", "Warm", "Cold", None)),
        City=chance.choice(people.CITIES)[0],
        Country=chance.choice(people.CITIES)[1],
    )
    if chance.random() < 0.6:
        made.add(
            "CampaignMember", CampaignId=made.pick("Campaign"), LeadId=lead, Status=chance.choice(("Sent", "Responded"))
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


def _opportunity(made: Recipes, number: int, book: str, entries: list[Any]) -> None:
    chance = made.chance
    stage, probability, forecast = chance.choice(STAGES)
    lines = [(chance.choice(entries), chance.randint(1, 12)) for _ in range(chance.choice((1, 1, 2, 3)))]
    amount = round(sum(entry[2] * count for entry, count in lines), 2)
    account = made.pick("Account")
    closes = chance.randint(-180, 600)
    opportunity = made.add(
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
        CampaignId=made.pick("Campaign") if number % 6 == 0 else None,
        HasOpportunityLineItem=1,
        NextStep="Call back" if number % 4 == 0 else None,
    )
    for (entry, product, price, name, code), count in lines:
        made.add(
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
        made.add(
            "OpportunityContactRole",
            OpportunityId=opportunity,
            ContactId=made.pick("Contact"),
            IsPrimary=1,
            Role=chance.choice(("Decision Maker", "Evaluator", "Business User")),
        )


def _order(made: Recipes, number: int, book: str, entries: list[Any]) -> None:
    chance = made.chance
    ordered = chance.randint(5, 500)
    order = made.add(
        "Order",
        AccountId=made.pick("Account"),
        EffectiveDate=day(ordered),
        Status=chance.choice(("Draft", "Activated")),
        Pricebook2Id=book,
        OrderNumber=f"{number + 100:08}",
        TotalAmount=0.0,
    )
    for entry, product, price, _, _ in chance.sample(entries, chance.choice((1, 2, 3))):
        made.add(
            "OrderItem",
            OrderId=order,
            PricebookEntryId=entry,
            Product2Id=product,
            Quantity=float(chance.randint(1, 5)),
            UnitPrice=price,
            OrderItemNumber=f"{len(made.ids.get('OrderItem', [])) + 1:010}",
        )


def _service(made: Recipes) -> None:
    chance = made.chance
    queues = made.ids["Group"][:1]
    for number in range(420):
        subject, reason = chance.choice(people.CASE_SUBJECTS)
        age = chance.uniform(0.5, 700)
        is_closed = chance.random() < 0.6
        contact = made.pick("Contact")
        case = made.add(
            "Case",
            days=age,
            CaseNumber=f"{number + 1000:08}",
            Subject=subject,
            ContactId=contact,
            AccountId=made.pick("Account"),
            Status="Closed" if is_closed else chance.choice(("New", "Working", "Escalated")),
            Origin=chance.choice(("Email", "Phone", "Web")),
            Priority=chance.choice(("High", "Medium", "Low")),
            Type=chance.choice(("Electrical", "Mechanical", "Electronic", "Structural", "Other")),
            Reason=reason if number % 3 else None,
            IsClosed=int(is_closed),
            ClosedDate=stored_moment(NOW - timedelta(days=age / 2)) if is_closed else None,
            IsEscalated=int(number % 17 == 0),
            Description=f"{subject}. The rider asks for help." if number % 2 else None,
            OwnerId=queues[0] if number % 8 == 0 else chance.choice(made.users),
        )
        if chance.random() < 0.5:
            made.add(
                "CaseComment",
                ParentId=case,
                CommentBody=f"We looked into it: {subject.lower()}.",
                IsPublished=int(number % 2),
            )
    for number in range(420):
        what = made.pick(chance.choice(("Account", "Opportunity", "Case")))
        who = made.pick(chance.choice(("Contact", "Contact", "Lead")))
        status = chance.choice(("Not Started", "In Progress", "Completed", "Deferred"))
        made.add(
            "Task",
            Subject=chance.choice(people.TASK_SUBJECTS),
            Status=status,
            Priority=chance.choice(("High", "Normal", "Low")),
            WhatId=what if not who.startswith("00Q") else None,
            WhoId=who if number % 5 else None,
            IsClosed=int(status == "Completed"),
            ActivityDate=day(chance.randint(-60, 400)) if number % 6 else None,
        )
    for _ in range(160):
        starts = NOW - timedelta(days=chance.uniform(-60, 400))
        made.add(
            "Event",
            Subject=chance.choice(("Meeting", "Demo ride", "Workshop visit", "Call")),
            WhatId=made.pick("Account"),
            WhoId=made.pick("Contact"),
            StartDateTime=stored_moment(starts),
            EndDateTime=stored_moment(starts + timedelta(hours=1)),
            ActivityDateTime=stored_moment(starts),
            ActivityDate=day(starts),
            DurationInMinutes=60,
            IsAllDayEvent=0,
            Location=chance.choice(people.CITIES)[0],
        )


def _bikes(made: Recipes) -> None:
    chance = made.chance
    for name, code, category, price in people.PARTS:
        made.add(
            "Part__c",
            Name=name,
            Part_Number__c=code,
            Category__c=category,
            List_Price__c=price,
            Stock__c=chance.randint(0, 400),
        )
    dealers = chance.sample(made.ids["Account"], 30)
    for number, dealer in enumerate(dealers):
        made.add(
            "Dealer_Agreement__c",
            Name=f"Agreement {2020 + number % 6}-{number:02}",
            Dealer__c=dealer,
            Signed_On__c=day(chance.randint(30, 1500)),
            Discount__c=float(chance.choice((10, 15, 20))),
            Tier__c=chance.choice(("Bronze", "Silver", "Gold")),
            Exclusive__c=int(number % 7 == 0),
        )
    for number in range(320):
        model = chance.choice(MODELS)
        sold = chance.randint(3, 1100)
        bike = made.add(
            "Bike__c",
            days=sold,
            Name=f"{model} {number + 1}",
            Model__c=model,
            Colour__c=chance.choice(COLOURS[model]),
            Frame_Number__c=f"K{model[0]}{(NOW - timedelta(days=sold)).year % 100}{chance.choice('VL')}{number:05}"[
                :11
            ],
            Options__c=";".join(
                chance.sample(
                    ("Rain Cover", "Second Battery", "Child Seat", "GPS Tracker", "Winter Tyres"), chance.randint(0, 3)
                )
            )
            or None,
            Rider__c=made.pick("Contact"),
            Dealer__c=chance.choice(dealers),
            Sold_On__c=day(sold),
            In_Warranty__c=int(sold < 730),
            Price__c={"Haul": 4890.0, "Barrow": 5690.0, "Porter": 8990.0}[model],
            Mileage_km__c=float(chance.randint(0, 12_000)),
        )
        for _ in range(chance.choice((0, 1, 1, 2))):
            _visit(made, bike, dealers)
        if number % 6 == 0:
            made.add(
                "Warranty_Claim__c",
                Bike__c=bike,
                Case__c=made.pick("Case"),
                Amount__c=float(chance.randint(20, 900)),
                Outcome__c=chance.choice(("Open", "Accepted", "Rejected", "Goodwill")),
            )
        if number % 4 == 0:
            made.add(
                "Feedback__c",
                Rider__c=made.pick("Contact"),
                Bike__c=bike,
                Score__c=chance.randint(0, 10),
                Words__c=chance.choice(("Great bike", "Too heavy", "Children love it", "Brakes squeal", None)),
            )
        if number % 3 == 0:
            made.add(
                "kfleet__Device__c",
                Name=f"Tracker {number}",
                kfleet__Bike__c=bike,
                kfleet__Serial__c=f"TRK{number:06}",
                kfleet__Battery__c=float(chance.randint(5, 100)),
                kfleet__Last_Seen__c=stored_moment(NOW - timedelta(hours=chance.randint(0, 900))),
            )


def _visit(made: Recipes, bike: str, dealers: list[str]) -> None:
    chance = made.chance
    visit = made.add(
        "Service_Visit__c",
        Bike__c=bike,
        Workshop__c=chance.choice(dealers),
        Date__c=day(chance.randint(-20, 700)),
        Kind__c=chance.choice(("Inspection", "Repair", "Recall", "Warranty")),
        Cost__c=float(chance.randint(0, 600)),
        Status__c=chance.choice(("Planned", "Done", "Done", "Cancelled")),
        Notes__c="Checked brakes and battery.",
    )
    for _ in range(chance.choice((0, 1, 2))):
        made.add("Visit_Part__c", Visit__c=visit, Part__c=made.pick("Part__c"), Quantity__c=chance.randint(1, 3))


def _rest(made: Recipes) -> None:
    chance = made.chance
    for number, (city, _, _, latitude, longitude) in enumerate(people.CITIES):
        made.add(
            "Depot__c",
            Name=f"Depot {city}",
            Operator__c=made.pick("Account"),
            Place__Latitude__s=latitude,
            Place__Longitude__s=longitude,
            Bays__c=chance.randint(4, 60),
            Opens__c=f"{6 + number % 4:02}:30:00.000Z",
        )
    for number in range(70):
        promised = chance.randint(-10, 300)
        made.add(
            "Delivery__c",
            Order__c=made.pick("Order"),
            Depot__c=made.pick("Depot__c"),
            Promised__c=day(promised),
            Status__c=chance.choice(("Packed", "Shipped", "Delivered")),
            Arrived__c=stored_moment(NOW - timedelta(days=promised)) if number % 3 else None,
        )
    for number in range(60):
        made.add(
            "Test_Ride__c",
            Lead__c=made.pick("Lead"),
            Dealer__c=made.pick("Account"),
            Model__c=chance.choice(MODELS),
            Starts__c=stored_moment(NOW - timedelta(days=chance.uniform(-30, 300))),
            Stars__c=chance.randint(1, 5) if number % 4 else None,
        )
    for number in range(18):
        made.add(
            "Fleet__c",
            Name=f"Fleet {number + 1}",
            Customer__c=made.pick("Account"),
            Manager__c=chance.choice(made.users),
            Bikes__c=chance.randint(3, 90),
        )
    for number in range(40):
        made.add(
            "Asset",
            Name=f"Charging cabinet {number + 1}",
            AccountId=made.pick("Account"),
            Status=chance.choice(("Shipped", "Installed", "Registered")),
            SerialNumber=f"CC-{number:04}",
            InstallDate=day(chance.randint(10, 900)),
            Price=1490.0,
            Quantity=1.0,
        )
    for number in range(12):
        made.add(
            "Ride__x",
            ExternalId=f"ride-{number}",
            DisplayUrl=f"https://rides.example/{number}",
            Distance__c=float(number * 3),
            Frame__c=f"KH25V{number:05}",
        )
    for number in range(40):
        account = made.pick("Account")
        made.add("Note", Title=f"Visit {number + 1}", ParentId=account, Body="Talked about winter tyres.", IsPrivate=0)
    gone = made.add("Account", Name="Gone Ltd", IsDeleted=1)
    made.add("Contact", FirstName="Greta", LastName="Gone", Name="Greta Gone", AccountId=gone, IsDeleted=1)
