"""``constrain chat``: its options, and the loop of questions and answers."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from constrain.arguments import Flag, option
from constrain.chat.reading.events import CallStarted, ReasoningDelta, TextDelta
from constrain.cli import flags, shared
from constrain.cli.chat.entry import ask_user, kept_history, read_entry
from constrain.cli.chat.screen import Screen
from constrain.cli.chat.servers import Servers
from constrain.cli.chat.slash import SlashCommands
from constrain.cli.chat.stop import Stop
from constrain.cli.chat.talk import Result, Talk
from constrain.errors import ConstrainError
from constrain.generation.completion import Finished
from constrain.generation.options import Options  # noqa: TC001 - typer reads the annotations
from constrain.language.policies import CompileOptions  # noqa: TC001

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain.chat.tools.calls import ToolCall
    from constrain.generation.options import ChatOptions

_QUESTION = "Run it? [y]es, [n]o, [a]lways this tool: "


@dataclass(frozen=True)
class _Chat:
    """The flags of ``chat`` that no other command has."""

    system: str = option("", Flag("System message."))
    mcp: list[str] | None = option(
        None,
        Flag(
            "MCP servers whose tools the model may call: a configuration file, a command or a URL; any number.",
            metavar="CONFIG",
        ),
    )
    yes: bool = option(False, Flag("Run the model's calls of tools without asking."))
    markdown: bool = option(True, Flag("Whether a terminal shows free text as Markdown."))
    history: bool = option(True, Flag("Whether questions are kept for the next conversation."))
    seed: int | None = option(None, Flag("Seed; the same seed repeats the answers."))


@flags.takes(
    machine=shared.Machine, language=shared.Language, own=_Chat, options=flags.options, policies=flags.policies
)
def chat(
    machine: shared.Machine, language: shared.Language, own: _Chat, options: Options, policies: CompileOptions
) -> None:
    """Talks with a model: each line is a question, or a command that begins with a slash (/help lists them).

    Answers match the schema or grammar, if there is one; /schema changes it. Calls of tools run after a question to
    the user. Ctrl-C ends an answer, Ctrl-D the conversation. Without a terminal, each line of the input is a question.
    """
    from constrain.llama.model import Model

    is_terminal = sys.stdin is not None and sys.stdin.isatty()
    screen, stop = Screen(is_markdown=own.markdown), Stop()
    with contextlib.ExitStack() as open_:
        servers = open_.enter_context(Servers())
        with shared.show_progress(screen.notes, f"Loading {machine.name}"):
            for given in own.mcp or ():
                servers.add(given)
            loaded = open_.enter_context(Model(machine.model, **machine.sizes()))
        settings: ChatOptions = {**options, **policies, "seed": own.seed}  # type: ignore[typeddict-item]
        talk = Talk(
            loaded,
            settings,
            schema=None,
            system=own.system,
            find_tools=servers.tools,
            allow=_make_allow(screen, stop, is_terminal=is_terminal, allows_all=own.yes),
        )
        with shared.name_file(language.file):
            if (wanted := language.read()) is not None:
                talk.set_schema(wanted)
        commands = SlashCommands(talk, servers, screen.note)
        open_.enter_context(kept_history(screen.note, is_kept=own.history and is_terminal))
        failed = _talk(talk, commands, screen, stop, is_terminal=is_terminal)
    if failed:
        raise typer.Exit(shared.FAILED)


def _talk(talk: Talk, commands: SlashCommands, screen: Screen, stop: Stop, *, is_terminal: bool) -> bool:
    """Reads and answers until the input ends; returns whether an error ended it, which it does without a terminal."""
    while True:
        try:
            entry = read_entry(is_terminal=is_terminal)
            if entry is None:
                return False
            if entry.startswith("/"):
                commands.run(entry.strip())
            elif entry.strip():
                _answer(talk, entry, screen, stop, is_terminal=is_terminal)
        except EOFError:  # noqa: PERF203 - an error ends a line, and not the conversation
            return False
        except KeyboardInterrupt:  # forgets the line, or stops the command
            if not is_terminal:
                raise
            screen.note("")
        except (ConstrainError, OSError, ValueError) as error:
            shared.show_error(error)
            if not is_terminal:
                return True


def _answer(talk: Talk, question: str, screen: Screen, stop: Stop, *, is_terminal: bool) -> None:
    """Shows the answer to a question, until it is complete or Ctrl-C at the terminal stops it."""
    is_free = talk.schema is None
    try:
        with stop.watch() if is_terminal else contextlib.nullcontext():
            for event in talk.ask(question, stop.is_noted):
                match event:
                    case TextDelta(text):
                        screen.write(text, as_markdown=is_free)
                    case ReasoningDelta(text):
                        screen.note(text, end="")
                    case CallStarted():
                        screen.end()
                    case Finished(completion):
                        screen.end()
                        shared.show_warnings(talk.untold(completion))
                    case Result(_, text):
                        screen.result(text)
    finally:
        screen.end()
    if stop.is_noted():
        screen.note("(stopped)")


def _make_allow(screen: Screen, stop: Stop, *, is_terminal: bool, allows_all: bool) -> Callable[[ToolCall], bool]:
    """Returns the function that asks the user whether a call may run; without a terminal, ``--yes`` decides."""
    always: set[str] = set()

    def allow(call: ToolCall) -> bool:
        screen.call(call)
        if allows_all or call.name in always:
            return True
        if not is_terminal:
            screen.note("(not run: there is no terminal to ask at; --yes runs all calls)", style="yellow")
            return False
        with stop.asking():
            while (answer := ask_user(_QUESTION).strip().lower()[:1]) not in ("y", "n", "a"):
                pass
        if answer == "a":
            always.add(call.name)
        return answer != "n"

    return allow
