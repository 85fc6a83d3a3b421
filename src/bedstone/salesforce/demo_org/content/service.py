"""Records of service: cases, tasks and events."""

from datetime import timedelta

from bedstone.salesforce.demo_org.content import people
from bedstone.salesforce.demo_org.content.recipes import NOW, Recipes, day
from bedstone.salesforce.demo_org.dates import format_moment


def add_service(recipes: Recipes) -> None:
    chance = recipes.chance
    queue = recipes.ids["Group"][0]
    for number in range(420):
        _add_case(recipes, number, queue)
    for number in range(420):
        what = recipes.pick(chance.choice(("Account", "Opportunity", "Case")))
        who = recipes.pick(chance.choice(("Contact", "Contact", "Lead")))
        status = chance.choice(("Not Started", "In Progress", "Completed", "Deferred"))
        recipes.add(
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
        recipes.add(
            "Event",
            Subject=chance.choice(("Meeting", "Demo ride", "Workshop visit", "Call")),
            WhatId=recipes.pick("Account"),
            WhoId=recipes.pick("Contact"),
            StartDateTime=format_moment(starts),
            EndDateTime=format_moment(starts + timedelta(hours=1)),
            ActivityDateTime=format_moment(starts),
            ActivityDate=day(starts),
            DurationInMinutes=60,
            IsAllDayEvent=0,
            Location=chance.choice(people.CITIES)[0],
        )


def _add_case(recipes: Recipes, number: int, queue: str) -> None:
    chance = recipes.chance
    subject, reason = chance.choice(people.CASE_SUBJECTS)
    age = chance.uniform(0.5, 700)
    is_closed = chance.random() < 0.6
    contact = recipes.pick("Contact")
    case = recipes.add(
        "Case",
        days=age,
        CaseNumber=f"{number + 1000:08}",
        Subject=subject,
        ContactId=contact,
        AccountId=recipes.pick("Account"),
        Status="Closed" if is_closed else chance.choice(("New", "Working", "Escalated")),
        Origin=chance.choice(("Email", "Phone", "Web")),
        Priority=chance.choice(("High", "Medium", "Low")),
        Type=chance.choice(("Electrical", "Mechanical", "Electronic", "Structural", "Other")),
        Reason=reason if number % 3 else None,
        IsClosed=int(is_closed),
        ClosedDate=format_moment(NOW - timedelta(days=age / 2)) if is_closed else None,
        IsEscalated=int(number % 17 == 0),
        Description=f"{subject}. The rider asks for help." if number % 2 else None,
        OwnerId=queue if number % 8 == 0 else chance.choice(recipes.users),
    )
    if chance.random() < 0.5:
        recipes.add(
            "CaseComment",
            ParentId=case,
            CommentBody=f"We looked into it: {subject.lower()}.",
            IsPublished=int(number % 2),
        )
