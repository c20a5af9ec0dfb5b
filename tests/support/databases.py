"""Databases for tests and benchmarks, as CREATE statements that SQLite and PostgreSQL read, with some rows.

A line describes a table: its name, then its columns, each ``name`` or ``name:type`` or ``name>table`` for a foreign key
of that table's first column. The first column is the primary key. ``t`` is text, ``i`` an integer, ``n`` a decimal,
``f`` a float, ``d`` a date, ``m`` a moment, ``b`` a truth value; other types are written out. Words that are no name
are quoted. What comes after ``!`` in a line is SQL.
"""

from __future__ import annotations

_TYPES = {
    "": "INTEGER",
    "t": "VARCHAR(80)",
    "i": "INTEGER",
    "n": "NUMERIC(10,2)",
    "f": "DOUBLE PRECISION",
    "d": "DATE",
    "m": "TIMESTAMP",
    "b": "BOOLEAN",
}

_VALUES = {
    "t": "'word {n}'",
    "n": "{n}.5",
    "f": "{n}.25",
    "d": "'2024-0{n}-11'",
    "m": "'2024-0{n}-11 10:00:00'",
    "b": "TRUE",
}

_SHOP = """
customers id name:t country:t joined:d
orders id customer_id>customers total:f placed:m paid:b
items id order_id>orders product:t quantity:i price:n
"""

_MUSIC = """
artists artist_id name:t
albums album_id title:t artist_id>artists
genres genre_id name:t
media_types media_type_id name:t
tracks track_id name:t album_id>albums genre_id>genres media_type_id>media_types composer:t milliseconds:i unit_price:n
playlists playlist_id name:t
playlist_tracks playlist_track_id playlist_id>playlists track_id>tracks
employees employee_id first_name:t last_name:t reports_to>employees hire_date:m city:t
customers customer_id first_name:t last_name:t company:t country:t email:t support_rep_id>employees
invoices invoice_id customer_id>customers invoice_date:m billing_country:t total:n
invoice_lines invoice_line_id invoice_id>invoices track_id>tracks unit_price:n quantity:i
! CREATE VIEW album_sizes AS SELECT albums.album_id, albums.title, COUNT(*) AS tracks FROM albums JOIN tracks ON
  tracks.album_id = albums.album_id GROUP BY albums.album_id, albums.title;
"""

_RENTAL = """
countries country_id country:t
cities city_id city:t country_id>countries
addresses address_id street:t city_id>cities phone:t
stores store_id address_id>addresses opened:d
staff staff_id first_name:t last_name:t address_id>addresses store_id>stores active:b
customers customer_id store_id>stores first_name:t last_name:t email:t address_id>addresses active:b created:d
languages language_id name:t
films film_id title:t description:text release_year:i language_id>languages original_language_id>languages rate:n
categories category_id name:t
film_categories film_category_id film_id>films category_id>categories
actors actor_id first_name:t last_name:t
film_actors film_actor_id film_id>films actor_id>actors
inventory inventory_id film_id>films store_id>stores
rentals rental_id inventory_id>inventory customer_id>customers staff_id>staff rented:m returned:m
payments payment_id rental_id>rentals customer_id>customers staff_id>staff amount:n paid:m
! CREATE VIEW film_list AS SELECT film_id, title, UPPER(title) AS loud FROM films;
"""

_HOSTILE = """
order id select:t group:t from>order Order:i
it's;-- a"b:t c'd:t e\\f:i \N{LATIN SMALL LETTER E WITH ACUTE}t\N{LATIN SMALL LETTER E WITH ACUTE}:t 1st:n
user id name:t count:i sum:i true>order date:d time:m upper:t lower:t ?column?:i coalesce:t
CamelCase Id Name:t userId>user Ünïcode:t \N{SNOWMAN}:f
sum id count>user sum:n avg:f min:t max:t round:n
users id name:t sum_id>sum order_id>order user_id>user
"""

_AREAS = {
    "hr": "persons departments positions contracts salaries absences reviews skills trainings payslips",
    "crm": "accounts contacts leads deals stages campaigns tickets comments surveys calls",
    "shop": "products categories brands prices discounts baskets coupons ratings images bundles",
    "sales": "offers orders lines shipments invoices payments refunds returns taxes targets",
    "stock": "suppliers warehouses shelves batches movements counts purchases deliveries transfers units",
    "ledger": "books entries postings periods currencies rates budgets assets loans costs",
}


def _office() -> str:
    """Returns 60 tables, which refer to the first one of their area, to the one before them, or to another area."""
    lines = []
    first = [f"{area}_{names.split()[0]}" for area, names in _AREAS.items()]
    for number, (area, names) in enumerate(_AREAS.items()):
        tables = [f"{area}_{name}" for name in names.split()]
        for position, table in enumerate(tables):
            keys = [] if position == 0 else [f"owner_id>{tables[0]}"]
            keys += [f"parent_id>{tables[position - 1]}"] if position % 3 == 2 else []
            keys += [f"ref_id>{first[number - 1]}"] if number and position % 4 == 1 else []
            own = f"id name:t note{position}:t created:m day:d amount:n share:f number{number}:i open:b"
            lines.append(" ".join([table, own, *keys]))
    return "\n".join(lines)


LINES = {"shop": _SHOP, "music": _MUSIC, "rental": _RENTAL, "hostile": _HOSTILE, "office": _office()}

NAMES = tuple(LINES)


def statements(name: str, rows: int = 3) -> tuple[str, str]:
    """Returns the CREATE statements of a database, and the INSERT statements of its rows."""
    lines, _, more = LINES[name].strip().partition("\n! ")
    made, filled, keys = [], [], {}
    for line in lines.split("\n"):
        table, *columns = line.split(" ")
        declared, values = [], []
        for position, column in enumerate(columns):
            named, _, referred = column.partition(">")
            named, _, kind = named.partition(":")
            if position == 0:
                keys[table] = named
            written = f"{_quote(named)} {_TYPES.get(kind, kind.upper())}" + (" PRIMARY KEY" if position == 0 else "")
            declared.append(
                written + (f" REFERENCES {_quote(referred)} ({_quote(keys[referred])})" if referred else "")
            )
            values.append(_VALUES.get("t" if kind == "text" else kind, "{n}"))
        if ":" in columns[0]:
            values[0] = "'key {n}'"
        made.append(f"CREATE TABLE {_quote(table)} ({', '.join(declared)});\n")
        written = ", ".join(f"({', '.join(values)})".format(n=n) for n in range(1, rows + 1))
        filled.append(f"INSERT INTO {_quote(table)} VALUES {written};\n")
    return "".join(made) + more, "".join(filled)


def _quote(name: str) -> str:
    quoted = name.replace('"', '""')
    return f'"{quoted}"'
