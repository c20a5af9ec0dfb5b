"""No recursion is as deep as the input is long: each is listed with what bounds it, and driven with deep input."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.calls import package_calls, recursive_groups
from tests.support.kernel_calls import kernel_calls

ROOT = Path(__file__).parent.parent

# A line is a group of functions that call one another, or some of a large group; those above it say what bounds it.
KERNEL = {
    "height: max_recursed_height levels, and below a decision MAX_NESTED_DECISIONS": """
        ExpressionStore::derive ExpressionStore::derivative ExpressionStore::alternation ExpressionStore::intersection
        ExpressionStore::decide_intersection ExpressionStore::within
        ExpressionStore::first ExpressionStore::find_first
        ExpressionStore::find_without_counts ExpressionStore::without_counts
        ExpressionStore::find_without_far_counts ExpressionStore::without_far_counts
        ExpressionStore::uncounted_chain ExpressionStore::uncounted_repetition ExpressionStore::uncounted_window
        ExpressionStore::find_lengths ExpressionStore::lengths ExpressionStore::lengths_of_chain
        ExpressionStore::lengths_of_alternation ExpressionStore::lengths_of_repetition
        ExpressionStore::lengths_of_window ExpressionStore::lengths_of_intersection
        ExpressionStore::alphabet ExpressionStore::find_alphabet
        ExpressionStore::distance ExpressionStore::find_distance
        ExpressionStore::build_shortest ExpressionStore::shortest ExpressionStore::search_shortest
        ExpressionStore::some_match""",
    "the call within meets what is no concatenation": "ExpressionStore::concatenation",
    "continuation bytes of a character: 3": "ExpressionStore::utf8",
    "max_rule_depth = 200": """
        Bounds::way_of_path
        Bounds::is_plain""",
    "MAX_NESTED_GROUPS": """
        Parser::alive
        Parser::outlook Parser::OutlookSearch::run Parser::OutlookSearch::read_rule""",
    "max_recursed_depth = 50; parts that are deeper are imported before what they are in": """
        Importer::expression Importer::import Importer::make Importer::parts Importer::import_from_below""",
    "bytes of a token: max_token_bytes = 64": "Exploration::follow",
    "a terminal's base has none: 2 calls": "Bounds::of_lexeme",
    "no terminal matches the empty text, so what follows a lexeme is none yet: 2 calls": """
        MaskComputation::add_following MaskComputation::compute""",
    "the wide expression is no intersection: 2 calls": """
        ContextIndependentTokens::make ContextIndependentTokens::of ContextIndependentTokens::by_difference""",
    "a state without far counts has none: 2 calls": "ContextIndependentTokens::without_far_counts",
    "max_branchings": "Speller::tree",
    "the nesting of C++ types in an archive": """
        Writer::each Writer::put
        Reader::each Reader::get""",
    "another overload, a container's function of the same name, or the class named in its own constructor": """
        ContextIndependentTokens::key
        Array::begin
        Array::empty
        Array::end
        Array::size
        Completions::shortest
        ExpressionStore::representatives
        LimitSet::LimitSet LimitSet::add
        Locked::Locked
        LongWork::LongWork
        Memory::remember
        RulePaths::size
        Stepping::step
        limit_message
        mix""",
}

PACKAGE = {
    "lists in the type of a key: MAX_LIST_NESTING": "language.short_schema._type",
    "MAX_GROUP_NESTING of patterns": """
        regex.anchors._cut
        regex.string_spellings.AnySpelling._made regex.string_spellings.AnySpelling.of
        regex.lookaround.Elimination._cut_at_edges
        regex.lookaround.Elimination.lengths
        regex.lookaround.Elimination._joined regex.lookaround.Elimination._narrowed
        regex.lookaround.Elimination._loop regex.lookaround.Elimination._texts
        regex.spelling._Translation.made regex.spelling._Translation.of
        chat.answers.escapes._Characters._after chat.answers.escapes._Characters._repeat
        composition.boundaries._without_counts
        lark.lexing.gaps._beginnings""",
    "MAX_CLASS_NESTING": "regex.parsing.brackets.read_class",
    "halves of a bound, so the logarithm of its digits": """
        regex.decimals._greater
        regex.decimals._less
        regex.decimals._fraction_greater
        regex.decimals._fraction_less""",
    "digits of a Pydantic limit on a date or time: under 40 characters": """
        types.patterns._at_most
        types.patterns._at_least""",
    "bytes of a character: 4": """
        inspection.characters._follow""",
    "hexadecimal digits of a character: 4": "regex.string_spellings._hexadecimal",
    "MAX_BRANCHINGS": "regex.string_spellings._tree",
    "MAX_NESTING of Lark grammars": """
        lark.lexing.gaps._refuse_unreadable
        lark.reading.rule_options.part_of_several
        lark.reading.reader._Reader._node
        lark.rules._leaves
        lark.rules.RuleAutomaton.add lark.rules.RuleAutomaton._add_sequence
        lark.parameters.Specializing._specialized
        lark.terminals.terminal_expression
        lark.terminals.inner_nodes
        lark.terminals._depth""",
    "MAX_CALL_NESTING of Lark grammars": """
        lark.reading.calls._argument lark.reading.calls._call
        lark.parameters.holds
        lark.parameters._conditions""",
    "MAX_GRAMMAR_NESTING of Lark grammars": """
        lark.reading.reader._Reader._replaced lark.reading.reader._Reader.read""",
    "JSON inside a grammar after %lark, which has no braces of grammars: 1": """
        lark.reading.scanning._grammar_end lark.reading.scanning.inside_braces""",
    "MAX_GBNF_NESTING of GBNF grammars": """
        gbnf.reading._Reader.node
        gbnf.grammar._expression
        gbnf.grammar._leaves
        gbnf.grammar._depth
        gbnf.grammar._Emitter._joined gbnf.grammar._Emitter._with_terminals
        gbnf.spelling._written gbnf.spelling._grouped
        gbnf.spelling.first_leaf""",
    "the nesting of a grammar that is exported; what is deeper than Python's stack is a LimitError (deep_enough)": """
        exporting.characters._Merging._tail
        exporting.nodes.depth
        exporting.nodes.is_nullable
        exporting.nodes.names_in
        exporting.nodes.size
        exporting.nodes.without_empty
        exporting.notations.gbnf._Writer._exactly
        exporting.notations.gbnf._Writer._item exporting.notations.gbnf._Writer._sequence
        exporting.notations.gbnf._Writer._up_to
        exporting.notations.gbnf._symbols
        exporting.notations.lark._Writer._definition exporting.notations.lark._Writer._expression
        exporting.notations.regex._Writing._made exporting.notations.regex._Writing._written
        exporting.notations.spelling.has_pattern
        exporting.notations.spelling.pattern
        exporting.plan._Inlining._in_place exporting.plan._Inlining._written
        exporting.reduction._Rules._rest exporting.reduction._Rules.body
        exporting.terminals.Terminals._inner exporting.terminals.Terminals._made""",
    "the nesting of groups in a pattern (MAX_GROUP_NESTING)": """
        lark.lexing.gaps._beginnings_before
        regex.named_groups._Automaton.add regex.named_groups._Automaton.repeat""",
    "the nesting of a certificate's expressions; what is deeper than Python's stack is refused": """
        verify.Match.after verify.Match.steps
        verify.Match.accepts verify.Match.may_end""",
    "a grammar's records within one another: 4": "language.digest._spell_value",
    "INLINED_EDGES": "language.iteration._Iteration._inline",
    "chains of other temperatures have no others: 1": """
        llama.decoding.sampler.Chain.accept
        llama.decoding.sampler.Chain.close""",
    "MAX_FIELD_NESTING": "server.messages.conversation._read_texts",
    "a namespace holds functions only: 2 calls": "server.responses.repeated._repeat_tool",
    "the same name of an object of another class, which it holds: 1": """
        cli.chat.screen.Screen.write
        cli.chat.servers.Servers.__exit__
        cli.chat.servers.Servers.tools
        llama.prebuilt.finding._Finder.find_spec
        engine.constraint.Constraint._repr_html_
        llama.model.Model.tokens_in_progress
        mcp.connection.Connection.close
        mcp.connection.Connection.instructions
        mcp.sessions.Session.instructions""",
    "MAX_COLUMN_NESTING": "batch.tables.columns._Types._find_named batch.tables.columns._Types.find",
    "MAX_PARTIAL_NESTING": """
        partial.types.PartialType._fits partial.types.PartialType.fitting
        partial.types.PartialType._build partial.types.PartialType.value
        partial.written.Written.plain""",
    "MAX_VOTED_NESTING": """
        voting.election._elect voting.election._merge_lists voting.election._merge_objects
        voting.election._count
        voting.similarity.similarity""",
    "answers to one prompt, in a list: 2 calls": "generation.batch._values",
    "the status is 200 then: 2 calls": "ray.endpoint.front._Response._confirm ray.endpoint.front._Response._send_one",
    "MAX_FORMAT_NESTING of structural tags": """
        structural.showing._item structural.showing.show
        structural.grammar._Emitter.add structural.grammar._Emitter.add_choice structural.grammar._Emitter.add_tag
        structural.regular.RegularTexts._repetition structural.regular.RegularTexts.of
        structural.grammar._size
        structural.members._written
        structural.reading._is_endless""",
    "MAX_COMPOSITION_NESTING of compositions": """
        chat.answers.language.AnswerLanguage.bound composition.source.Composition.bound composition.source._bound
        composition.source.Composition.policies_in_force
        composition.source.Composition.render composition.source._rendered
        composition.source.Composition.closed composition.source._closed
        composition.grammar._Composer.ways composition.grammar.composition_grammar
        chat.answers.grammar.answer_grammar chat.answers.language.AnswerLanguage.grammar
        generation.proofs.sources._encode generation.proofs.sources._members""",
    "MAX_IN_PLACE_DEPTH": """
        json_schema.keywords.expansion.Expansion.expand json_schema.formulas.complements.complement
        json_schema.values.contradictions._within""",
    "expressions of undeclared keys are three levels deep, as key_classes and partition make them": """
        json_schema.shapes.keys.unquoted""",
    "MAX_COUNTED_DEPTH": """
        json_schema.values.counting.Supply.is_endless json_schema.values.counting.Supply._has_endless_arrays
        json_schema.values.counting.Supply._list json_schema.values.counting.Supply._arrays""",
    "depth of the values of one goal: MAX_COUNTED_DEPTH": "json_schema.values.counting.json_value",
    "questions about members of one value, each once: MAX_CASES": """
        json_schema.formulas.cases.Cases._satisfied json_schema.formulas.cases.Cases._violated
        json_schema.formulas.cases.Cases._satisfied json_schema.formulas.cases.Cases.split""",
    "nesting of conditions that apply in place: MAX_IN_PLACE_DEPTH": """
        json_schema.formulas.formulas.Decisions.build
        json_schema.formulas.formulas.simplified
        json_schema.formulas.alternatives._surely""",
    "a goal negates a goal that is not negated, and conjunctions hold none: 2 calls": """
        json_schema.shapes.data.Goal.is_fixed""",
    "the call within has no list of what is excluded: 2 calls": """
        json_schema.shapes.numeric._nonempty_without json_schema.shapes.numeric.nonempty
        json_schema.shapes.number_texts.canonical_spellings""",
    "MAX_SCHEMA_DEPTH": """
        inspection.check.filled
        json_schema.hint._Writer.value json_schema.hint._Writer._object
        server.openapi.shapes._reduce
        server.openapi.shapes._references""",
    "sys.getrecursionlimit(): RecursionError becomes an error about the input, as it does for json": """
        generation.planning._texts
        generation.proofs.sources._decode
        chat.prompt.messages.map_strings
        chat.prompt.shaping._plain_schema
        chat.prompt.shaping._python
        chat.tools.annotations.is_context
        chat.tools.annotations.mentions_context
        chat.tools.signatures._make_model""",
    "levels of a type, which Pydantic has built with more calls for each": """
        types.exact_decimals._exact
        types.schema._Generator._is_hashable
        types.schema._Generator._listed_names types.schema._Generator._names types.schema._Generator.dict_schema
        types.schema._field_of
        partial.types.PartialType._expand""",
    "quotes.places.COMPARED_DEPTH levels of a value": """
        quotes.places.Quotes._fits""",
    "structure around calls that a chat template writes, of a few pieces": """
        chat.answers.structure.tree
        chat.reading.reader._leads_to_end""",
    "text goes on once behind a preamble: 2 calls": """
        chat.reading.reader.Reader._read_reached chat.reading.reader.Reader._read_section""",
    "special tokens of a text, each cut once": """
        vocabulary.tokenizer.Tokenizer._continued vocabulary.tokenizer.Tokenizer._plain""",
    "a method or function of the same name of something else, which is within it or made by it": """
        types.exact_decimals.ExactValidator.validate_json
        server.playground.request.PlaceRequest.model
        server.sandbox.session.Session.refusals
        server.llama_server.about.About._describe server.llama_server.about.About.models
        server.serving.generation.Generator.prompt server.serving.generation._make_plan
        generation.job.Run.finish
        generation.job.Writing.take
        generation.partial.PartialEvents.finish
        partial.reader.FieldReader.feed partial.reader.Fields.feed
        partial.reader.FieldReader.finish partial.reader.Fields.finish
        partial.reader.FieldReader.value partial.reader.Fields.partial
        generation.job.Run.submit
        server.completions.response.CompletionWriter._told server.completions.response.CompletionWriter.write
        chat.reading.progress.TextProgress.feed
        chat.reading.progress.TextProgress.finish
        chat.reading.progress.TextProgress.take
        chat.answers.language.AnswerLanguage.closed
        chat.answers.language.AnswerLanguage.describe
        chat.answers.language.AnswerLanguage.render
        chat.tools.calls.CustomCall.acall chat.tools.calls.FunctionCall.acall
        chat.tools.calls.CustomCall.call chat.tools.calls.FunctionCall.call
        chat.tools.calls.CustomCall.name chat.tools.calls.FunctionCall.name
        chat.tools.calls.FunctionCall.text
        generation.tool_loop.ToolRun.value generation.tool_loop.ToolSteps.reply
        chat.reading.reply.ReplyProgress.feed chat.reading.reply.ReplyProgress.finish
        chat.tools.kinds.FunctionTool.__get__
        chat.tools.kinds.FunctionTool.read
        engine.constraint.Constraint.accepts
        engine.constraint.Constraint.precompute
        engine.remembered._Kept.memory_bytes
        engine.readings.Readings._keep_copy engine.readings.Readings.accept engine.readings.Readings.rollback
        engine.readings.Readings._words engine.readings.Readings.fill_bitmask
        engine.readings.Readings.completion_tokens
        engine.readings.Readings.compute_mask
        engine.readings.Readings.diagnose
        engine.readings.Readings.forced_after
        engine.readings.Readings.forced_bytes
        engine.readings.Readings.is_accepting
        engine.readings.Readings.is_cut
        engine.readings.Readings.is_finished
        engine.readings.Readings.near_limit
        engine.readings.Readings.is_narrowed
        engine.readings.Readings.is_narrowed_by_budget
        engine.readings.Readings.is_quick
        engine.readings.Readings.knows_mask
        engine.readings.Readings.limited_masks
        engine.readings.Readings.limits_met
        engine.readings.Readings.min_tokens_left
        engine.readings.Readings.n_shortened
        engine.readings.Readings.shortest_completion
        lark.lexemes.Lexemes.stop
        structural.grammar._Emitter.schema structural.grammar._Emitter.schema.compile_values
        json_schema.keywords.expansion.Expansion.child
        json_schema.keywords.expansion.Expansion.root
        json_schema.formulas.arrays.ArrayMoves.closes
        json_schema.formulas.objects.ObjectMoves.closes
        json_schema.formulas.independent_keys.IndependentKeys.is_productive
        json_schema.documents.references.References.notes
        json_schema.documents.sources.Sources.embedded
        engine.readings.Readings.temperature
        engine.readings.Readings.expected
        engine.scopes.Reading._is_short engine.scopes.Reading.is_narrowed_by_budget
        engine.scopes.Reading.accept
        engine.scopes.Reading.completion_tokens
        engine.scopes.Reading.compute_mask
        engine.scopes.Reading.diagnose
        engine.scopes.Reading.fill_bitmask
        engine.scopes.Reading.forced_bytes
        engine.scopes.Reading.is_accepting
        engine.scopes.Reading.is_cut
        engine.scopes.Reading.is_finished
        engine.scopes.Reading.near_limit
        engine.scopes.Reading.is_narrowed
        engine.scopes.Reading.is_quick
        engine.scopes.Reading.knows_mask
        engine.scopes.Reading.limited_masks
        engine.scopes.Reading.limits_met
        engine.scopes.Reading.n_shortened
        engine.scopes.Reading.place
        engine.scopes.Reading.rollback
        engine.scopes.Reading.shortest_completion
        engine.scopes.Reading.temperature
        engine.scopes.Reading.expected
        json_schema.emission.emitter.Emitter.key
        json_schema.emission.emitter.Emitter.member
        json_schema.emission.emitter.Emitter.undeclared_key
        json_schema.emission.element_emission.ElementEmission.item json_schema.emission.emitter.Emitter.item
        json_schema.emission.string_spellings.StringSpellings.of
        json_schema.values.unique_items._Settlement.has_more_than
        lark.reading.syntax.Range.at
        lark.parameters.Specializing.body
        lark.rules._Emitter.reserve
        llama.decoding.answer.Answer._choose llama.decoding.answer.Answer.choose
        llama.decoding.answer.Answer.begin
        llama.binding.Candidates.selected
        llama.threads.cores.Linux.sleep
        llama.embedding.Embedder.close
        llama.trees.TokenTrees.close
        llama.model.Model.close
        llama.model.Model.text_tokens
        llama.model.Model.turn
        llama.scheduling.scheduler.Scheduler.close
        llama.contexts.sequences.Sequences.close
        llama.contexts.sequences.Sequences.restore
        llama.contexts.sequences.Sequences.save
        llama.contexts.slots.Slots._cut llama.contexts.slots.Slots.cut
        llama.contexts.slots.Slots.end_to_keep
        llama.contexts.slots.Slots.evaluate
        llama.contexts.slots.Slots.keep
        batch.files.BatchFiles.flush
        batch.files.AnswerFile.close
        batch.files.BatchFiles.flush_due
        batch.locations.StoredFile.name
        batch.locations.StoredFile.read
        batch.locations.StoredFile.size
        batch.locations.StoredFile.stem
        batch.locations.StoredFile.suffix
        batch.locations.StoredFile.with_name
        batch.locations.StoredFile.write
        batch.locations._Reading.close
        batch.locations._Reading.readinto
        batch.stores.parts.StoredAnswers.read batch.stores.parts.StoredErrors.read
        batch.tables.columns.AnswerColumns.schema
        ray.pool.Pool.answer
        server.app.Application.close
        server.responses.sql_store.SqlStore.remove server.responses.store.ResponseStore.delete
        server.serving.generation.Answers.begun
        server.serving.generation.Answers.end_by server.serving.generation.Generator.end_by
        server.serving.generation.Answers.submit
        server.requests.question.Question.schema
        server.serving.models.Models._unload server.serving.models.Models.close
        server.serving.models.Models.load
        server.serving.models.Models.parallel
        server.serving.metrics.Metrics.samples
        server.serving.models._Entry.memory_bytes
        server.sandbox.session.Session.alone
        server.sandbox.session.Session.close
        server.sandbox.workers.Workers._end server.sandbox.workers.Workers.close
        vocabulary.vocabulary.Vocabulary.token_bytes""",
}


@pytest.mark.slow(only=("Python",))
@pytest.mark.parametrize("language", ["C++", "Python"])
def test_every_recursion_is_listed_with_what_bounds_it(language: str) -> None:
    table, prefix = (KERNEL, "") if language == "C++" else (PACKAGE, "constrain.")
    entries = {
        frozenset(prefix + name for name in line.split())
        for lines in table.values()
        for line in lines.strip().split("\n")
    }
    folder = ROOT / "constrain"
    if not (folder / "engine/core/src").exists():
        pytest.skip("the sources are not there")
    groups = recursive_groups(kernel_calls(folder / "engine/core/src") if language == "C++" else package_calls(folder))
    unlisted = [sorted(group) for group in groups if not any(entry <= group for entry in entries)]
    assert not unlisted, "functions that call themselves; make them loops, or say in the table what bounds them"
    gone = [sorted(entry) for entry in entries if not any(entry <= group for group in groups)]
    assert not gone, "these no longer call themselves"


_BEGIN = """
import resource, sys, threading
resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, resource.getrlimit(resource.RLIMIT_STACK)[1]))
import constrain
from constrain import Lark, Regex
VOCABULARY = constrain.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])

def compiled(schema, **policies):
    return constrain.compile(schema, VOCABULARY, cache=False, **policies)

def nested(around, inner, times):
    for _ in range(times):
        inner = around(inner)
    return inner

def chain(schema, last, links=1500):
    definitions = {f"d{i}": schema({"$ref": f"#/$defs/d{i + 1}"}) for i in range(links)}
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{links}": last}}
"""

WORKS = {
    "links beside a star": """
        pattern = "^([ab]*|" + "a*b" * 60_000 + ")$"
        constraint = compiled({"type": "string", "pattern": pattern})
        assert constraint.accepts('"ab"')
        assert len(constraint._packed().tables) > 0""",
    "links": """
        constraint = compiled(Regex("ab*" * 60_000))
        matcher = constraint.matcher()
        assert matcher.min_tokens_left == 60_000
        matcher.fill_bitmask(constraint.allocate_bitmask()[0])
        assert constraint.accepts("a" * 60_000)""",
    "words of a star, each within the next": """
        words = "|".join("a" * length + "b" for length in range(1, 300))
        assert compiled(Regex(f"({words})*")).accepts("ab")""",
    "groups": """
        assert compiled(Regex("(a" * 99 + ")?" * 99)).accepts("aa")
        assert compiled(Regex("(" * 99 + "a*b" + ")*c" * 99)).accepts("c")""",
    "expressions that share their parts": """
        terminals = [f'T{i}: T{i + 1} "x" | "z" T{i + 1}' for i in range(40)]
        assert compiled(Lark("\\n".join(["start: T0", *terminals, 'T40: "q"']))).accepts("q" + "x" * 40)""",
    "expressions that share their first parts": """
        terminals = [f'T{i}: T{i + 1} "x" | T{i + 1} "z"' for i in range(40)]
        assert compiled(Lark("\\n".join(["start: T0", *terminals, 'T40: "q"']))).accepts("q" + "xz" * 20)""",
    "deep expressions": """
        words = " ".join(f"w{i}" for i in range(900))
        constraint = compiled(Lark('start: %regex {"substring_words": "' + words + '"}'))
        assert constraint.accepts("w1")
        constraint.matcher().fill_bitmask(constraint.allocate_bitmask()[0])""",
    "rules": """
        rules = [f'r{i}: "a" r{i + 1} "b"' for i in range(5000)]
        assert compiled(Lark("\\n".join(["start: r0", *rules, 'r5000: "c"']))).matcher().min_tokens_left == 10_001
        rules = [f'r{i}: r{(i + 1) % 1000} "a" | "b"' for i in range(1000)]
        assert compiled(Lark("\\n".join(["start: r0", *rules]))).accepts("ba")""",
    "values": """
        lists = {"type": "array", "items": {"$ref": "#/$defs/a"}, "uniqueItems": True}
        assert compiled({"$ref": "#/$defs/a", "$defs": {"a": lists}}).accepts("[" * 100_000 + "]" * 100_000)
        deep = "[" * 3000 + "]" * 3000
        assert compiled({"type": "array", "uniqueItems": True}).accepts("[" + deep + "," + deep[1:-1] + "]")""",
    "schemas": """
        compiled(nested(lambda inner: {"type": "array", "items": inner}, {}, 490))
        compiled(nested(lambda inner: {"not": {"items": inner}}, {"type": "string"}, 240))
        compiled(chain(lambda inner: {"not": {"type": "array", "items": inner}}, {"type": "integer"}))
        compiled(chain(lambda inner: {"type": "array", "contains": inner}, {"type": "integer"}))""",
    "a long token": """
        tokens = [*(bytes([byte]) for byte in range(256)), b"", b"a" * 100_000]
        vocabulary = constrain.Vocabulary.from_tokens(tokens, eos=[256])
        matcher = constrain.compile(Regex("a*"), vocabulary, cache=False).matcher()
        assert matcher.accept(97)
        matcher.forced_bytes()""",
    "repetitions": """
        constraint = compiled(Lark('start: ("a" "b")~100000'))
        assert constraint.matcher().min_tokens_left == 200_000
        assert constraint.accepts("ab" * 100_000)""",
}

REFUSED = {
    "MAX_PATH_STATES": """compiled(Lark('start: ("a" "b")~200000'))""",
    "rule r.*MAX_PATH_STATES": """compiled(Lark('start: "x" | r\\nr: ("a" "b")~200000'))""",
    "MAX_SHORTEST_MATCH": """compiled(Lark('start: y~200\\ny: x~200\\nx: ("a" "b")~500'))""",
    "MAX_CALL_WORK": 'compiled(Regex("a" * 2_500_000))',
    "MAX_IN_PLACE_DEPTH": 'compiled(chain(lambda inner: {"allOf": [inner]}, {"type": "integer"}))',
    "MAX_EXPRESSION_DEPTH": """
        from constrain.engine import core
        from constrain.language.tree import Alternation, Concatenation, Literal
        a, b = Literal(b"a"), Literal(b"b")
        core.is_empty(nested(lambda part: Concatenation((Alternation((part, b)), a)), a, 20_000))""",
    "unknown how many different items there are": """
        unique = lambda inner: {"type": "array", "uniqueItems": True, "minItems": 2, "items": inner}
        compiled(chain(unique, {"enum": [1, 2, 3]}))""",
    "nested too deeply": "compiled(nested(lambda kind: list[kind], int, 450))",
    "the schema is nested too deeply": """compiled('{"items":' * 30_000 + "true" + "}" * 30_000)""",
}


def _run(body: str) -> subprocess.CompletedProcess[str]:
    lines = body.strip("\n").split("\n")
    margin = len(lines[0]) - len(lines[0].lstrip())
    program = _BEGIN + "\n".join(line[margin:] for line in lines) + "\n"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "CONSTRAIN_CACHE": ""}
    command = ["bash", "-c", 'ulimit -s 1024; exec "$0" -c "$1"', sys.executable, program]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)


@pytest.mark.slow(but=("schemas",))
@pytest.mark.skipif(sys.platform == "win32", reason="the size of the stack is set as Unix does")
@pytest.mark.parametrize("name", WORKS)
def test_deep_input_needs_no_deep_stack(name: str) -> None:
    done = _run(WORKS[name])
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.slow(only=("MAX_CALL_WORK",))
@pytest.mark.skipif(sys.platform == "win32", reason="the size of the stack is set as Unix does")
@pytest.mark.parametrize("limit", REFUSED)
def test_input_beyond_a_limit_is_refused_by_its_name(limit: str) -> None:
    body = "\n".join(line[8:] if line.startswith(" " * 8) else line for line in REFUSED[limit].strip("\n").split("\n"))
    program = (
        "import re\ntry:\n"
        + "\n".join("    " + line for line in body.split("\n"))
        + f"\nexcept constrain.ConstrainError as error:\n    assert re.search({limit!r}, str(error)), error\n"
        + "else:\n    raise AssertionError('not refused')"
    )
    done = _run(program)
    assert done.returncode == 0, done.stderr[-2000:]
