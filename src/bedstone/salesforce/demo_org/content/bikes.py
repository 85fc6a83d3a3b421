"""Records of the company's own objects: bikes, dealers, workshops, depots, fleets."""

from datetime import timedelta

from bedstone.salesforce.demo_org.content import people
from bedstone.salesforce.demo_org.content.objects import COLOURS, MODELS
from bedstone.salesforce.demo_org.content.recipes import NOW, Recipes, day
from bedstone.salesforce.demo_org.dates import format_moment


def add_bikes(recipes: Recipes) -> None:
    chance = recipes.chance
    for name, code, category, price in people.PARTS:
        recipes.add(
            "Part__c",
            Name=name,
            Part_Number__c=code,
            Category__c=category,
            List_Price__c=price,
            Stock__c=chance.randint(0, 400),
        )
    dealers = chance.sample(recipes.ids["Account"], 30)
    for number, dealer in enumerate(dealers):
        recipes.add(
            "Dealer_Agreement__c",
            Name=f"Agreement {2020 + number % 6}-{number:02}",
            Dealer__c=dealer,
            Signed_On__c=day(chance.randint(30, 1500)),
            Discount__c=float(chance.choice((10, 15, 20))),
            Tier__c=chance.choice(("Bronze", "Silver", "Gold")),
            Exclusive__c=int(number % 7 == 0),
        )
    for number in range(320):
        _add_bike(recipes, number, dealers)


def _add_bike(recipes: Recipes, number: int, dealers: list[str]) -> None:
    chance = recipes.chance
    model = chance.choice(MODELS)
    sold = chance.randint(3, 1100)
    bike = recipes.add(
        "Bike__c",
        days=sold,
        Name=f"{model} {number + 1}",
        Model__c=model,
        Colour__c=chance.choice(COLOURS[model]),
        Frame_Number__c=f"K{model[0]}{(NOW - timedelta(days=sold)).year % 100}{chance.choice('VL')}{number:05}"[:11],
        Options__c=";".join(
            chance.sample(
                ("Rain Cover", "Second Battery", "Child Seat", "GPS Tracker", "Winter Tyres"), chance.randint(0, 3)
            )
        )
        or None,
        Rider__c=recipes.pick("Contact"),
        Dealer__c=chance.choice(dealers),
        Sold_On__c=day(sold),
        In_Warranty__c=int(sold < 730),
        Price__c={"Haul": 4890.0, "Barrow": 5690.0, "Porter": 8990.0}[model],
        Mileage_km__c=float(chance.randint(0, 12_000)),
    )
    for _ in range(chance.choice((0, 1, 1, 2))):
        _add_visit(recipes, bike, dealers)
    _add_bike_details(recipes, number, bike)


def _add_bike_details(recipes: Recipes, number: int, bike: str) -> None:
    chance = recipes.chance
    if number % 6 == 0:
        recipes.add(
            "Warranty_Claim__c",
            Bike__c=bike,
            Case__c=recipes.pick("Case"),
            Amount__c=float(chance.randint(20, 900)),
            Outcome__c=chance.choice(("Open", "Accepted", "Rejected", "Goodwill")),
        )
    if number % 4 == 0:
        recipes.add(
            "Feedback__c",
            Rider__c=recipes.pick("Contact"),
            Bike__c=bike,
            Score__c=chance.randint(0, 10),
            Words__c=chance.choice(("Great bike", "Too heavy", "Children love it", "Brakes squeal", None)),
        )
    if number % 3 == 0:
        recipes.add(
            "kfleet__Device__c",
            Name=f"Tracker {number}",
            kfleet__Bike__c=bike,
            kfleet__Serial__c=f"TRK{number:06}",
            kfleet__Battery__c=float(chance.randint(5, 100)),
            kfleet__Last_Seen__c=format_moment(NOW - timedelta(hours=chance.randint(0, 900))),
        )


def _add_visit(recipes: Recipes, bike: str, dealers: list[str]) -> None:
    chance = recipes.chance
    visit = recipes.add(
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
        recipes.add("Visit_Part__c", Visit__c=visit, Part__c=recipes.pick("Part__c"), Quantity__c=chance.randint(1, 3))


def add_rest(recipes: Recipes) -> None:
    chance = recipes.chance
    for number, (city, _, _, latitude, longitude) in enumerate(people.CITIES):
        recipes.add(
            "Depot__c",
            Name=f"Depot {city}",
            Operator__c=recipes.pick("Account"),
            Place__Latitude__s=latitude,
            Place__Longitude__s=longitude,
            Bays__c=chance.randint(4, 60),
            Opens__c=f"{6 + number % 4:02}:30:00.000Z",
        )
    for number in range(70):
        promised = chance.randint(-10, 300)
        recipes.add(
            "Delivery__c",
            Order__c=recipes.pick("Order"),
            Depot__c=recipes.pick("Depot__c"),
            Promised__c=day(promised),
            Status__c=chance.choice(("Packed", "Shipped", "Delivered")),
            Arrived__c=format_moment(NOW - timedelta(days=promised)) if number % 3 else None,
        )
    for number in range(60):
        recipes.add(
            "Test_Ride__c",
            Lead__c=recipes.pick("Lead"),
            Dealer__c=recipes.pick("Account"),
            Model__c=chance.choice(MODELS),
            Starts__c=format_moment(NOW - timedelta(days=chance.uniform(-30, 300))),
            Stars__c=chance.randint(1, 5) if number % 4 else None,
        )
    _add_other_records(recipes)


def _add_other_records(recipes: Recipes) -> None:
    chance = recipes.chance
    for number in range(18):
        recipes.add(
            "Fleet__c",
            Name=f"Fleet {number + 1}",
            Customer__c=recipes.pick("Account"),
            Manager__c=chance.choice(recipes.users),
            Bikes__c=chance.randint(3, 90),
        )
    for number in range(40):
        recipes.add(
            "Asset",
            Name=f"Charging cabinet {number + 1}",
            AccountId=recipes.pick("Account"),
            Status=chance.choice(("Shipped", "Installed", "Registered")),
            SerialNumber=f"CC-{number:04}",
            InstallDate=day(chance.randint(10, 900)),
            Price=1490.0,
            Quantity=1.0,
        )
    for number in range(12):
        recipes.add(
            "Ride__x",
            ExternalId=f"ride-{number}",
            DisplayUrl=f"https://rides.example/{number}",
            Distance__c=float(number * 3),
            Frame__c=f"KH25V{number:05}",
        )
    for number in range(40):
        account = recipes.pick("Account")
        recipes.add(
            "Note", Title=f"Visit {number + 1}", ParentId=account, Body="Talked about winter tyres.", IsPrivate=0
        )
    gone = recipes.add("Account", Name="Gone Ltd", IsDeleted=1)
    recipes.add("Contact", FirstName="Greta", LastName="Gone", Name="Greta Gone", AccountId=gone, IsDeleted=1)
