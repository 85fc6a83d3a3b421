"""Names, places and texts the records are made of."""

FIRST_NAMES = [
    *("Ada", "Amira", "Anton", "Beatriz", "Björn", "Carla", "Chidi", "Clara", "Dana", "David", "Elif", "Emil", "Eva"),
    *("Fatima", "Felix", "Gianna", "Greta", "Hana", "Hugo", "Ines", "Ivan", "Jasper", "Jia", "Johanna", "Jonas"),
    *("Kaja", "Karim", "Lars", "Laura", "Léa", "Liam", "Lotte", "Luca", "Malik", "Mara", "Marek", "Mei", "Mila"),
    *("Nadia", "Nils", "Noor", "Olga", "Omar", "Paolo", "Petra", "Quentin", "Rosa", "Samir", "Sofia", "Søren"),
    *("Tara", "Theo", "Tomás", "Uma", "Vera", "Viktor", "Wanda", "Xenia", "Yusuf", "Zoë"),
]
LAST_NAMES = [
    *("Abe", "Ahmed", "Andersen", "Bauer", "Becker", "Bianchi", "Björk", "Castro", "Costa", "Cruz", "Dahl", "Duarte"),
    *("Eriksen", "Fischer", "Fontaine", "García", "Haas", "Hansen", "Hoffmann", "Ibrahim", "Ivanova", "Jansen"),
    *("Kaya", "Keller", "Kim", "König", "Kowalski", "Krüger", "Larsen", "Lefèvre", "Lindqvist", "Lopez", "Maier"),
    *("Martin", "Meyer", "Moreau", "Müller", "Novak", "Nyström", "Okafor", "O'Brien", "O'Connor", "Park", "Pereira"),
    *("Petrov", "Quinn", "Rossi", "Sato", "Schmidt", "Silva", "Smith", "Sørensen", "Tanaka", "Torres", "Vargas"),
    *("Weber", "Wójcik", "Xu", "Yılmaz", "Zhang"),
]
CITIES = (
    ("Hamburg", "Germany", "DE", 53.55, 9.99),
    ("Copenhagen", "Denmark", "DK", 55.68, 12.57),
    ("Lyon", "France", "FR", 45.76, 4.84),
    ("Rotterdam", "Netherlands", "NL", 51.92, 4.48),
    ("Bologna", "Italy", "IT", 44.49, 11.34),
    ("Bristol", "United Kingdom", "GB", 51.45, -2.59),
    ("Portland", "United States", "US", 45.52, -122.68),
    ("Zürich", "Switzerland", "CH", 47.38, 8.54),
    ("Malmö", "Sweden", "SE", 55.6, 13.0),
    ("Gent", "Belgium", "BE", 51.05, 3.72),
    ("Vienna", "Austria", "AT", 48.21, 16.37),
    ("San Francisco", "United States", "US", 37.77, -122.42),
)
COMPANY_FIRST = [
    *("Acme", "Amber", "Anchor", "Atlas", "Beacon", "Birch", "Blue", "Bright", "Canal", "Cedar", "Cobalt", "Coral"),
    *("Delta", "Eagle", "Ember", "Falcon", "Fern", "Granite", "Harbour", "Hazel", "Iron", "Juniper", "Lakeside"),
    *("Lantern", "Linden", "Maple", "Meadow", "Meridian", "Northern", "Oak", "Orchard", "Pine", "Quarry", "Raven"),
    *("River", "Rowan", "Saffron", "Silver", "Summit", "Thistle", "Timber", "Velvet", "Willow", "Winter"),
]
COMPANY_LAST = (
    "Couriers", "Logistics", "Bakery", "Flowers", "Cycles", "Foods", "Kindergarten", "Hospital", "Post", "Brewery", "Studios",
    "Labs", "Energy", "Insurance", "Bank", "Schools", "Pharmacy", "Markets",
)  # fmt: skip
STREETS = ("Harbour Street", "Mill Lane", "Station Road", "Church Square", "Canal Street", "Garden Row", "Market Hall")
JOB_TITLES = ("Fleet Manager", "Buyer", "Owner", "Head of Operations", "Workshop Lead", "Accountant", "Mechanic", "CEO")
CASE_SUBJECTS = (
    ("Battery does not charge", "Electrical"),
    ("Display shows E07", "Electronic"),
    ("Display shows E12 after rain", "Electronic"),
    ("Brake squeals", "Mechanical"),
    ("Rear wheel wobbles", "Mechanical"),
    ("Motor cuts out uphill", "Electrical"),
    ("Box lid leaks", "Structural"),
    ("App cannot find the bike", "Electronic"),
    ("Invoice is wrong", "Other"),
    ("Delivery is late", "Other"),
    ("Dock cable is chafed", "Electrical"),
    ("Parking brake frozen", "Mechanical"),
)
TASK_SUBJECTS = (
    *("Call", "Send quote", "Send letter", "Follow up on offer", "Check invoice", "Plan demo ride"),
    "Ask for feedback",
)
PARTS = (
    ("Brake disc", "B-311", "Brake", 39.0),
    ("Brake pads", "B-120", "Brake", 18.5),
    ("Dock cable", "D-204", "Electronics", 24.0),
    ("Battery K500", "K-500", "Battery", 549.0),
    ("Battery K750", "K-750", "Battery", 749.0),
    ("Battery adapter", "A-17", "Battery", 35.0),
    ("Spiked tyre", "T-90", "Wheel", 59.0),
    ("Rim 20 inch", "R-20", "Wheel", 88.0),
    ("Winter grease", "G-9", "Drive", 9.5),
    ("Belt", "C-77", "Drive", 72.0),
    ("Speed sensor", "S-07", "Electronics", 31.0),
    ("Torque sensor", "S-12", "Electronics", 119.0),
    ("Display", "E-55", "Electronics", 189.0),
    ("Box lid", "F-03", "Frame", 145.0),
    ("Stand", "F-10", "Frame", 64.0),
    ("Charger 8 A", "H-8", "Electronics", 159.0),
)
