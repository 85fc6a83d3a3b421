"""Some five thousand linked records in the order in which they reference each other."""

from typing import Any

from bedstone.salesforce.demo_org.content import people
from bedstone.salesforce.demo_org.content.articles import add_articles
from bedstone.salesforce.demo_org.content.bikes import add_bikes, add_rest
from bedstone.salesforce.demo_org.content.recipes import Insert, Recipes, day
from bedstone.salesforce.demo_org.content.sales import add_sales
from bedstone.salesforce.demo_org.content.service import add_service
from bedstone.salesforce.demo_org.schema import Schema

COMPANY = "Kestrel Cycles"


def create_records(schema: Schema, insert: Insert) -> None:
    """Create every record of the demo org."""
    recipes = Recipes(schema, insert)
    _add_company(recipes)
    _add_accounts(recipes)
    add_sales(recipes)
    add_service(recipes)
    add_bikes(recipes)
    add_rest(recipes)
    add_articles(recipes.add, recipes.users, recipes.chance)
    for item in schema.objects.values():
        for kind in item.record_types:
            facts = {"Name": kind.label, "DeveloperName": kind.developer_name, "SobjectType": item.name}
            recipes.add("RecordType", days=900, Id=kind.id, IsActive=1, **facts)


def _add_company(recipes: Recipes) -> None:
    recipes.add(
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
        recipes.add("Profile", Name=name, Description=f"{name} of {COMPANY}")
    roles = [recipes.add("UserRole", Name="CEO", DeveloperName="CEO")]
    for name in ("Sales", "Service", "Workshops", "Finance"):
        roles.append(recipes.add("UserRole", Name=name, DeveloperName=name, ParentRoleId=roles[0]))
    for number in range(24):
        first, last = people.FIRST_NAMES[number * 2], people.LAST_NAMES[number * 2 + 1]
        username = (
            "admin@kestrel.example" if number == 0 else f"{first}.{last}@kestrel.example".lower().replace("'", "")
        )
        recipes.users.append(
            recipes.add(
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
                ProfileId=recipes.ids["Profile"][0 if number == 0 else 1],
                UserRoleId=roles[number % len(roles)],
                UserType="Standard",
                TimeZoneSidKey="America/Los_Angeles",
                LocaleSidKey="en_US",
                LanguageLocaleKey="en_US",
                EmailEncodingKey="UTF-8",
                Department=("Sales", "Service", "Finance")[number % 3],
                ManagerId=recipes.users[0] if number else None,
            )
        )
    for name, kind in (("Service Queue", "Queue"), ("Sales Queue", "Queue"), ("All Workshops", "Regular")):
        group = recipes.add("Group", Name=name, DeveloperName=name.replace(" ", "_"), Type=kind)
        recipes.add("QueueSobject", QueueId=group, SobjectType="Case" if "Service" in name else "Lead")
        for user in recipes.chance.sample(recipes.users, 4):
            recipes.add("GroupMember", GroupId=group, UserOrGroupId=user)


def _address(recipes: Recipes, prefix: str) -> dict[str, Any]:
    city, country, _, latitude, longitude = recipes.chance.choice(people.CITIES)
    return {
        f"{prefix}Street": f"{recipes.chance.choice(people.STREETS)} {recipes.chance.randint(1, 180)}",
        f"{prefix}City": city,
        f"{prefix}PostalCode": str(recipes.chance.randint(1000, 99999)),
        f"{prefix}Country": country,
        f"{prefix}Latitude": round(latitude + recipes.chance.uniform(-0.1, 0.1), 4),
        f"{prefix}Longitude": round(longitude + recipes.chance.uniform(-0.1, 0.1), 4),
    }


def _add_accounts(recipes: Recipes) -> None:
    chance = recipes.chance
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
        account = recipes.add(
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
            ParentId=recipes.pick("Account") if number > 40 and number % 11 == 0 else None,
            Description=f"{name} in the demo org." if number % 3 == 0 else None,
            **_address(recipes, "Billing"),
        )
        for _ in range(chance.choice((1, 1, 2, 3))):
            _add_contact(recipes, account)


def _add_contact(recipes: Recipes, account: str | None) -> str:
    chance = recipes.chance
    first, last = chance.choice(people.FIRST_NAMES), chance.choice(people.LAST_NAMES)
    plain = "".join(sign for sign in f"{first}.{last}".lower() if sign.isascii() and (sign.isalnum() or sign == "."))
    return recipes.add(
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
        **_address(recipes, "Mailing"),
    )
