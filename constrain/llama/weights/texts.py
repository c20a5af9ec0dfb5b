"""Sample texts of prompts and answers: they tell which weights matter, and copies are compared on them.

They are prompts with answers in JSON, calls of functions, and plain prose, in several languages. Callers may pass texts
of their own, which are closer to their work.
"""

from __future__ import annotations

import json
from random import Random

_PROSE = """\
The harbour lay quiet in the early morning. Two boats had come in during the night, and the men who unloaded
them spoke little. A child counted the boxes aloud: one, two, three, up to forty-seven. Nobody asked what was
in them.

To mend a bicycle tube, take the wheel out, let out all the air, and pull one side of the tyre over the rim.
Pump the tube up a little and hold it under water: bubbles show the hole. Dry it, roughen the rubber, spread a
thin layer of glue, wait five minutes, and press the patch on firmly.

Water boils at 100 degrees Celsius at sea level, and at about 93 degrees at an altitude of 2,000 metres,
because the air presses on it less. That is why potatoes take longer in the mountains.

Dear Ms. Okafor, thank you for your letter of 3 March. We have looked into the two invoices that you mention.
The first (no. 2210-7) was paid twice, so we will send back 184.50 euros by Friday. The second is still open.

def mean(values):
    total = 0.0
    for value in values:
        total += value
    return total / len(values) if values else None

Der Zug nach Lindau fährt heute um 14.32 Uhr von Gleis 7 statt von Gleis 5. Reisende mit Fahrrädern benutzen
bitte die hinteren Wagen. Wir bitten um Entschuldigung für die Verspätung von etwa zehn Minuten.

La réunion aura lieu mardi prochain à neuf heures dans la petite salle. Merci de lire le compte rendu avant,
et d'apporter vos questions sur le budget.

El paciente, de 54 años, refiere dolor en la rodilla derecha desde hace tres semanas. No ha tenido fiebre. Se
recomienda reposo y una revisión dentro de diez días.

SELECT name, SUM(amount) AS total FROM orders JOIN customers USING (customer_id) WHERE placed >= '2024-01-01'
GROUP BY name HAVING SUM(amount) > 500 ORDER BY total DESC LIMIT 20;

Question: A shop sells pencils at 3 for 2 dollars. How much do 18 pencils cost?
Answer: 18 pencils are 6 times 3 pencils, so they cost 6 times 2 dollars, which is 12 dollars.
"""

SAMPLE = _PROSE.partition("\n\n")[0]
"""A short text in English."""

_NAMES = ("Ada Byrne", "Tomás Ruiz", "Li Wei", "Fatima Zahra", "Noah Klein", "Priya Nair", "Olga Petrova", "Sam Otieno")
_TOWNS = ("Bergen", "Porto", "Nairobi", "Graz", "Leeds", "Osaka", "Quito", "Halifax")
_THINGS = ("lamp", "rain coat", "garden hose", "tea pot", "bookshelf", "phone charger", "blanket", "bread knife")
_STATES = ("open", "paid", "late", "cancelled")
_TOOLS = ("get_weather", "send_message", "search_flights", "create_event", "convert_currency", "find_recipe")

_RECORDS = 5
"""Prompts of each kind, with their answers: some 2,500 tokens with the prose, which a small model reads in seconds."""


def sample_texts(seed: int) -> list[str]:
    """Returns texts, mixed, of some 2,500 tokens together. An even and an odd seed have no text in common."""
    random = Random(seed)  # noqa: S311 - nothing secret
    texts = [text for number, text in enumerate(_PROSE.split("\n\n")) if number % 2 == seed % 2]
    for _ in range(_RECORDS):
        texts += [_order(random), _call(random), _person(random)]
    random.shuffle(texts)
    return texts


def _prompt(asked: str, schema: object, answer: object) -> str:
    return (
        f"user: {asked}\n\nAnswer with JSON that matches this JSON Schema:\n{json.dumps(schema, ensure_ascii=False)}\n"
        f"assistant: {json.dumps(answer, ensure_ascii=False)}\n"
    )


def _person(random: Random) -> str:
    name, town, age = random.choice(_NAMES), random.choice(_TOWNS), random.randint(18, 90)
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "town": {"type": "string"}},
        "required": ["name", "age", "town"],
    }
    asked = f"{name} is {age} years old and has lived in {town} for {random.randint(1, 17)} years. Who is this about?"
    return _prompt(asked, schema, {"name": name, "age": age, "town": town})


def _order(random: Random) -> str:
    lines = [
        {"item": item, "count": random.randint(1, 9), "price": round(random.uniform(2, 90), 2)}
        for item in random.sample(_THINGS, random.randint(1, 3))
    ]
    number, state = f"{random.randint(100, 999)}-{random.randint(10, 99)}", random.choice(_STATES)
    schema = {
        "type": "object",
        "properties": {
            "order": {"type": "string", "pattern": "^[0-9]{3}-[0-9]{2}$"},
            "state": {"enum": list(_STATES)},
            "lines": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "item": {"type": "string"}, "count": {"type": "integer"}, "price": {"type": "number"},
                    },
                },
            },
        },
    }  # fmt: skip
    listed = ", ".join(f"{line['count']} times {line['item']} at {line['price']} each" for line in lines)
    asked = f"Order {number} from {random.choice(_TOWNS)} ({state}): {listed}. Extract the order."
    return _prompt(asked, schema, {"order": number, "state": state, "lines": lines})


def _call(random: Random) -> str:
    tool, town = random.choice(_TOOLS), random.choice(_TOWNS)
    day = f"2025-{random.randint(1, 12):02}-{random.randint(1, 28):02}"
    tools = [
        {
            "name": name,
            "parameters": {"type": "object", "properties": {"place": {"type": "string"}, "date": {"type": "string"}}},
        }
        for name in random.sample(_TOOLS, 2)
        if name != tool
    ]
    tools.append({"name": tool, "parameters": tools[0]["parameters"]})
    call = {"name": tool, "arguments": {"place": town, "date": day}}
    return (
        f"system: You may call these functions: {json.dumps(tools)}\n"
        f"user: Please use {tool.replace('_', ' ')} for {town} on {day}.\n"
        f"assistant: <tool_call>\n{json.dumps(call)}\n</tool_call>\n"
    )
