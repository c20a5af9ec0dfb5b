"""Response models of all kinds, as the documentation of instructor has them."""

from __future__ import annotations

from datetime import date, datetime  # noqa: TC003 - pydantic reads the annotations
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, Optional, TypedDict, TypeVar, Union
from uuid import UUID  # noqa: TC003

import pytest
from instructor import CitationMixin, Maybe, Mode, OpenAISchema
from instructor.core import InstructorRetryException
from pydantic import UUID4, BaseModel, ConfigDict, EmailStr, Field, IPvAnyAddress, TypeAdapter, conlist, field_validator

if TYPE_CHECKING:
    from collections.abc import Callable

    from instructor import Instructor

T = TypeVar("T")

BOTH = pytest.mark.parametrize("mode", [Mode.TOOLS, Mode.JSON_SCHEMA], ids=lambda mode: mode.name)


class User(BaseModel):
    name: str
    age: int


class Label(str, Enum):
    SPAM = "spam"
    NOT_SPAM = "not_spam"


class Classified(BaseModel):
    """A single class for a text."""

    label: Label


class Ticket(BaseModel):
    reason: str = Field(description="Why it is of these classes", max_length=60)
    labels: list[Literal["billing", "tech", "other"]] = Field(min_length=1, max_length=2)


class Address(BaseModel):
    street: str = Field(max_length=30)
    number: Annotated[int, Field(ge=1, le=999)]


class Resident(BaseModel):
    name: str = Field(max_length=20)
    address: Address
    former: Optional[Address] = None  # noqa: UP045 - as the documentation writes it


class Property(BaseModel):
    key: str = Field(max_length=10)
    value: str = Field(max_length=10)


class Character(BaseModel):
    name: str = Field(max_length=20)
    properties: list[Property] = Field(max_length=2)


class Search(BaseModel):
    kind: Literal["search"]
    query: str = Field(max_length=30)


class Lookup(BaseModel):
    kind: Literal["lookup"]
    id: int = Field(ge=0, le=10**6)


class Act(BaseModel):
    action: Union[Search, Lookup]  # noqa: UP007


class Chosen(BaseModel):
    action: Annotated[Search | Lookup, Field(discriminator="kind")]


class Node(BaseModel):
    name: str = Field(max_length=8)
    children: list[Node] = Field(default_factory=list, max_length=2)


class Query(BaseModel):
    id: int
    depends_on: list[int] = Field(default_factory=list, description="Ids that come first", max_length=3)


class Plan(BaseModel):
    queries: list[Query] = Field(min_length=1, max_length=2)


class Event(BaseModel):
    day: date
    at: datetime
    id: UUID
    version: UUID4
    address: IPvAnyAddress


class Priced(BaseModel):
    price: float = Field(gt=0, lt=10**6)
    rate: float = Field(ge=0, le=1)
    share: Annotated[int, Field(multiple_of=5, ge=0, le=100)]


class Contact(BaseModel):
    email: str = Field(pattern=r"^[a-z]{1,8}@[a-z]{1,8}\.(com|org)$")
    phone: str = Field(pattern=r"^\+?\d{3,12}$")


class Page(BaseModel, Generic[T]):
    items: list[T] = Field(max_length=2)
    total: int


class Users(Page[User]):
    """With a name of its own: Page[User] is none for a tool."""


class Defaults(BaseModel):
    """Everything may be left out."""

    name: str = "nobody"
    tags: list[str] = Field(default_factory=list, max_length=2)
    scores: dict[str, int] = Field(default_factory=dict, max_length=2)


class Thought(BaseModel):
    chain_of_thought: str = Field(description="Think step by step", max_length=80)
    answer: int


class Documented(BaseModel):
    """A point.

    Args:
        x: how far to the right.
        y: how far up.
    """

    x: int
    y: int


class Sealed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    word: str = Field(max_length=20)


class Aliased(BaseModel):
    first_name: str = Field(alias="firstName", max_length=20)


class Pairs(BaseModel):
    point: tuple[int, int]
    nothing: None
    flag: bool
    anything: Any = None


class OldStyle(OpenAISchema):
    """A schema in the older way."""

    word: str = Field(max_length=20)


MODELS = [
    Classified, Ticket, Resident, Character, Act, Chosen, Node, Plan, Event, Priced, Contact, Users, Defaults,
    Thought, Documented, Sealed, Aliased, Pairs, OldStyle, Maybe(User),
]  # fmt: skip


def ask(client: Instructor, response_model: Any, text: str = "Jason Liu is 25 years old.") -> Any:
    return client.create(
        response_model=response_model, messages=[{"role": "user", "content": f"Extract: {text}"}], max_retries=0
    )


@BOTH
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_an_answer_is_an_instance(connect: Callable[[Mode], Instructor], mode: Mode, model: type[BaseModel]) -> None:
    assert isinstance(ask(connect(mode), model), model)


def test_an_open_object_is_a_bad_request_where_the_schema_is_strict(connect: Callable[[Mode], Instructor]) -> None:
    """By the endpoint for responses instructor says that it is."""
    with pytest.raises(InstructorRetryException, match="additionalProperties"):
        ask(connect(Mode.RESPONSES_TOOLS), Defaults)


def test_a_name_that_no_tool_can_have_is_a_bad_request(client: Instructor) -> None:
    with pytest.raises(InstructorRetryException, match="no tool can be called"):
        ask(client, Page[User])


@BOTH
@pytest.mark.parametrize(
    "kind",
    [bool, int, Annotated[float, Field(ge=0, le=9)], Literal["yes", "no"], Label, list[int], list[User], list[str]],
    ids=str,
)
def test_an_answer_need_be_no_model(connect: Callable[[Mode], Instructor], mode: Mode, kind: Any) -> None:
    answer = ask(connect(mode), kind, "Give a short answer about the number 3.")
    TypeAdapter(kind).validate_python(answer)


def test_an_answer_may_be_a_union_of_models(client: Instructor) -> None:
    assert isinstance(ask(client, Union[Search, Lookup]), Search | Lookup)  # noqa: UP007


def test_an_answer_may_be_a_typed_dict(client: Instructor) -> None:
    class Point(TypedDict):
        x: int
        y: int

    assert set(ask(client, Point).model_dump()) == {"x", "y"}


def test_a_maybe_is_true_where_there_is_a_result(client: Instructor) -> None:
    found = ask(client, Maybe(User))
    assert bool(found) == (found.result is not None)


def test_a_list_with_bounds_keeps_them(client: Instructor) -> None:
    class Team(BaseModel):
        members: conlist(User, min_length=2, max_length=2)  # type: ignore[valid-type]

    assert len(ask(client, Team).members) == 2


def test_an_email_address_is_one(client: Instructor) -> None:
    """Of JSON Schema's kind; pydantic's takes fewer, so that instructor may have to ask again."""

    class Mail(BaseModel):
        address: EmailStr

    messages: list[Any] = [{"role": "user", "content": "Extract: write to jason@example.com."}]
    assert "@" in client.create(response_model=Mail, messages=messages, max_retries=3, temperature=0.3).address


def test_citations_are_looked_up_in_the_context(client: Instructor) -> None:
    class Fact(CitationMixin):
        statement: str = Field(max_length=30)
        substring_quotes: list[str] = Field(max_length=2)

    context = "Jason is 25."
    fact = client.create(
        response_model=Fact,
        messages=[{"role": "user", "content": context}],
        context={"context": context},
        max_retries=0,
    )
    assert all(quote in context for quote in fact.substring_quotes)


def test_a_validator_may_change_a_value(client: Instructor) -> None:
    class Shouted(BaseModel):
        word: str = Field(max_length=20)

        @field_validator("word")
        @classmethod
        def shout(cls, value: str) -> str:
            return value.upper()

    word = ask(client, Shouted).word
    assert word == word.upper()
