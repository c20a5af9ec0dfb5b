// Counts the tokens of lexemes, and finds the fewest that complete one.
#include "completions/token_limits.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <queue>
#include <tuple>

#include "base/errors.h"

namespace constrain {

namespace {

constexpr size_t few_derivatives = 64;  // derivatives of one terminal; with more, tokens are tried one by one

template <typename F>
void each_token(std::span<const uint32_t> words, F&& f) {
  for (size_t i = 0; i < words.size(); ++i) {
    for (uint32_t bits = words[i]; bits != 0; bits &= bits - 1) f(static_cast<uint32_t>(i * 32) + static_cast<uint32_t>(std::countr_zero(bits)));
  }
}

}  // namespace

// Counting ----------------------------------------------------------------------------------------------------------

bool TokenLimits::take(Place& place, std::string_view token) {
  if (!any()) return stepping_.step(place, token);
  Place next = place;
  bool begun_here = false;  // the token begins in a later lexeme
  bool same = true;
  for (size_t i = 0; i < token.size(); ++i) {
    const auto byte = static_cast<uint8_t>(token[i]);
    if (lexer_.step(next.lexer, byte) == LexId::dead) {
      same = false;
      begun_here = i == 0;
    }
    if (!stepping_.step(next, byte)) return false;
  }
  next.used = same ? place.used + 1 : begun_here ? 1 : 0;
  if (!settle(next)) return false;
  place = next;
  return true;
}

bool TokenLimits::settle(Place& place) {
  if (place.fresh) return true;
  std::vector<Lexer::Entry> left;
  bool some = false, changed = false;
  const auto add = [&left](TermId terminal, ExprId rest) {
    const auto is_same = [&](const Lexer::Entry& entry) { return entry.terminal == terminal && entry.expression == rest; };
    if (std::none_of(left.begin(), left.end(), is_same)) left.push_back({terminal, rest});
  };
  for (const Lexer::Entry& entry : lexer_.copy_of_entries(place.lexer)) {
    const uint32_t limit = grammar_.token_limit(entry.terminal);
    if (limit == unbounded) {
      add(entry.terminal, entry.expression);
      some |= !lexer_.is_none(entry.terminal);
      continue;
    }
    const bool ends = place.used >= limit;
    const bool completes = ends ? lexer_.expressions().nullable(entry.expression) : rest_of(entry.terminal, entry.expression) <= limit - place.used;
    some |= completes;
    if (completes) add(entry.terminal, ends ? ExprId::epsilon : entry.expression);
    if ((ends && entry.expression != ExprId::epsilon) || !completes) {
      add(lexer_.none_like(entry.terminal), entry.expression);
      changed = true;
    }
  }
  if (some && changed) place.lexer = lexer_.state(std::move(left));
  return some;
}

// Fewest tokens -----------------------------------------------------------------------------------------------------

uint64_t TokenLimits::rest_of(TermId terminal, ExprId rest) {
  if (lexer_.expressions().nullable(rest)) return 0;
  if (!rests_.find(paired(terminal, rest))) solve(terminal, rest);
  return *rests_.find(paired(terminal, rest));
}

// Explores all states at the ends of tokens, and counts from those that complete the lexeme backwards.
void TokenLimits::solve(TermId terminal, ExprId wanted) {
  std::vector<ExprId> states{wanted};
  FlatMap<uint32_t, uint32_t> numbers;
  numbers.insert(index(wanted), 0);
  std::vector<std::vector<uint32_t>> into(1);  // by number: states from which one token leads here
  using Entry = std::pair<uint64_t, uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  for (size_t i = 0; i < states.size(); ++i) {
    if (lexer_.expressions().nullable(states[i])) {
      queue.emplace(0, static_cast<uint32_t>(i));
      continue;
    }
    if (const uint64_t* known = rests_.find(paired(terminal, states[i]))) {
      if (*known != endless) queue.emplace(*known, static_cast<uint32_t>(i));
      continue;
    }
    if (states.size() > MAX_LIMITED_STATES.value) {
      throw LimitError("a lexeme with a limit on its tokens (max_tokens) has too many states (" + MAX_LIMITED_STATES.shown() + ")", Limit::call_work);
    }
    for (const LexemeEnd& end : ends_.of(lexer_.state({{terminal, states[i]}}))) {
      const ExprId after = lexer_.entries(end.lexer)[0].expression;
      const uint32_t* number = numbers.find(index(after));
      if (!number) {
        numbers.insert(index(after), static_cast<uint32_t>(states.size()));
        states.push_back(after);
        into.emplace_back();
        number = numbers.find(index(after));
      }
      into[*number].push_back(static_cast<uint32_t>(i));
    }
  }
  std::vector<uint64_t> rests(states.size(), endless);
  while (!queue.empty()) {
    const auto [rest, number] = queue.top();
    queue.pop();
    if (rests[number] != endless) continue;
    rests[number] = rest;
    for (uint32_t from : into[number]) queue.emplace(rest + 1, from);
  }
  for (size_t i = 0; i < states.size(); ++i) rests_.insert(paired(terminal, states[i]), rests[i]);
}

// A text that completes the lexeme in fewest tokens, among these one that is short.
std::string TokenLimits::text_in_fewest_tokens(TermId terminal, ExprId rest) {
  std::string text;
  while (!lexer_.expressions().nullable(rest)) {
    const uint64_t tokens = rest_of(terminal, rest);
    std::string_view best;
    ExprId next = ExprId::nothing;
    for (const LexemeEnd& end : ends_.of(lexer_.state({{terminal, rest}}))) {
      const ExprId after = lexer_.entries(end.lexer)[0].expression;
      if (rest_of(terminal, after) != tokens - 1) continue;
      Bitmask words(vocabulary_.words());
      end.tokens->add_to(words);
      each_token(words, [&](uint32_t token) {
        const std::string_view bytes = vocabulary_.token(token);
        if (next != ExprId::nothing && std::pair(bytes.size(), bytes) >= std::pair(best.size(), best)) return;
        best = bytes;
        next = after;
      });
    }
    text += best;
    rest = next;
  }
  return text;
}

void TokenLimits::prefer(TermId terminal, ExprId rest) {
  if (preferred_.find(index(rest))) return;
  const uint64_t tokens = rest_of(terminal, rest);
  if (tokens != endless && vocabulary_.spell(lexer_.shortest_texts().of(rest)).counts[0] > tokens) {
    lexer_.shortest_texts().prefer(rest, text_in_fewest_tokens(terminal, rest));
  }
  preferred_.insert(index(rest), 1);
}

// For each first byte of a terminal's texts: the fewest tokens of a text that begins with it, and the first of them.
std::array<TokenLimits::Beginning, 256> TokenLimits::find_beginnings(TermId terminal) {
  std::array<Beginning, 256> found;
  for (const LexemeEnd& end : ends_.of(lexer_.state({{terminal, lexer_.expression(terminal)}}))) {
    const ExprId after = lexer_.entries(end.lexer)[0].expression;
    const uint64_t rest = rest_of(terminal, after);
    if (rest == endless) continue;
    Bitmask words(vocabulary_.words());
    end.tokens->add_to(words);
    each_token(words, [&](uint32_t token) {
      const std::string_view bytes = vocabulary_.token(token);
      Beginning& known = found[static_cast<uint8_t>(bytes[0])];
      if (std::tuple(rest + 1, bytes.size(), bytes) < std::tuple(known.tokens, known.first.size(), known.first)) known = {rest + 1, bytes, after};
    });
  }
  return found;
}

const std::vector<std::optional<std::string>>& TokenLimits::rests_of_beginnings(TermId terminal) {
  if (const auto known = beginnings_.find(index(terminal)); known != beginnings_.end()) return known->second;
  std::vector<std::optional<std::string>> rests(256);
  const std::array<Beginning, 256> beginnings = find_beginnings(terminal);
  for (size_t byte = 0; byte < rests.size(); ++byte) {
    const Beginning& beginning = beginnings[byte];
    if (beginning.tokens > grammar_.token_limit(terminal)) continue;
    rests[byte] = std::string(beginning.first.substr(1)) + text_in_fewest_tokens(terminal, beginning.after);
  }
  return beginnings_.emplace(index(terminal), std::move(rests)).first->second;
}

void TokenLimits::prepare(LexId lexer) {
  if (!any()) return;
  if (!prepared_) {
    for (uint32_t t = 0; t < grammar_.token_limits.size(); ++t) {
      if (has_limit(TermId{t}) && grammar_.terminals[t] != ExprId::nothing) prefer(TermId{t}, grammar_.terminals[t]);
    }
    prepared_ = true;
  }
  for (const Lexer::Entry& entry : lexer_.copy_of_entries(lexer)) {
    if (has_limit(entry.terminal)) prefer(entry.terminal, entry.expression);
  }
}

// Checks ------------------------------------------------------------------------------------------------------------

// If the limits leave only some beginnings of a lexeme, the longest match of the lexeme before it may take just these.
// So the proof of lexing is then repeated without the others.
std::optional<TokenLimits::TooFew> TokenLimits::find_too_few() {
  if (!any()) return std::nullopt;
  stepping_.allow_call();
  std::vector<std::pair<uint32_t, ByteSet>> partly;
  uint64_t most = 0;
  uint32_t example = 0;
  for (uint32_t t = 0; t < grammar_.token_limits.size(); ++t) {
    const ExprId start = grammar_.terminals[t];
    if (!has_limit(TermId{t}) || start == ExprId::nothing) continue;
    const uint64_t least = of_terminal(t, [&] { return rest_of(TermId{t}, start); });
    if (least > grammar_.token_limits[t]) return TooFew{t, least, false};
    uint64_t needed = 0;  // tokens with which any beginning fits
    ByteSet good;
    const std::array<Beginning, 256> beginnings = of_terminal(t, [&] { return find_beginnings(TermId{t}); });
    for (size_t byte = 0; byte < beginnings.size(); ++byte) {
      if (beginnings[byte].tokens == endless) continue;
      needed = std::max(needed, beginnings[byte].tokens);
      if (beginnings[byte].tokens <= grammar_.token_limits[t]) good.add(static_cast<uint8_t>(byte));
    }
    if (needed <= grammar_.token_limits[t]) continue;
    partly.emplace_back(t, good);
    if (needed > most) {
      most = needed;
      example = t;
    }
  }
  if (partly.empty() || grammar_.self_delimiting) return std::nullopt;
  Grammar narrower = grammar_;
  ExpressionStore& store = narrower.expressions;
  for (const auto& [terminal, good] : partly) {
    const ExprId beginning = store.concatenation(store.bytes(good), store.repetition(store.bytes(ByteSet::range(0, 0xFF)), 0, unbounded));
    narrower.terminals[terminal] = store.intersection({narrower.terminals[terminal], beginning});
  }
  if (!find_lexing_conflict(narrower)) return std::nullopt;
  return TooFew{example, most, true};
}

// Masks -------------------------------------------------------------------------------------------------------------

Hash TokenLimits::key(const Place& place) const {
  const Hash at = mix(mix(seeded(0x6C696D), paired(place.lexer, place.set)), paired(place.text, place.track));
  return mix(at, (uint64_t{place.used} << 1) | (place.fresh ? 1u : 0u));
}

// Fewest tokens that complete the lexeme after the worst of the tokens that stay in it; 0 if nothing limits it.
uint64_t TokenLimits::worst_rest(LexId lexer) {
  if (const uint64_t* found = worst_.find(index(lexer))) return *found;
  uint64_t worst = 0;
  for (const LexemeEnd& end : ends_.of(lexer)) {
    uint64_t least = endless;
    for (const Lexer::Entry& entry : lexer_.copy_of_entries(end.lexer)) {
      if (lexer_.is_none(entry.terminal)) continue;
      least = std::min(least, has_limit(entry.terminal) ? rest_of(entry.terminal, entry.expression) : 0);
    }
    worst = std::max(worst, least);
  }
  worst_.insert(index(lexer), worst);
  return worst;
}

// Whether a lexeme that has just begun can always be completed within its limit.
bool TokenLimits::is_easy(uint32_t terminal) {
  const uint32_t limit = grammar_.token_limits[terminal];
  std::vector<ExprId> found{grammar_.terminals[terminal]};
  FlatMap<uint32_t, uint8_t> seen;
  for (size_t i = 0; i < found.size(); ++i) {
    if (found.size() > few_derivatives) return false;
    for (uint8_t byte : lexer_.expressions().representatives({found[i]})) {
      const ExprId next = lexer_.expressions().derivative(found[i], byte);
      if (next == ExprId::nothing || seen.find(index(next))) continue;
      seen.insert(index(next), 1);
      if (rest_of(TermId{terminal}, next) >= limit) return false;
      found.push_back(next);
    }
  }
  return true;
}

bool TokenLimits::all_easy() {
  if (!all_easy_) {
    bool easy = true;
    for (uint32_t t = 0; t < grammar_.token_limits.size() && easy; ++t) {
      if (has_limit(TermId{t}) && grammar_.terminals[t] != ExprId::nothing) easy = is_easy(t);
    }
    all_easy_ = easy;
  }
  return *all_easy_;
}

// Tokens that stay in the lexeme, by the state they lead to.
void TokenLimits::refuse_inside(const Place& place, std::span<const uint32_t> words, Bitmask& inside, TokenSet& out) {
  const std::vector<Lexer::Entry> entries = lexer_.copy_of_entries(place.lexer);
  uint32_t least = unbounded;
  bool spent = false;
  for (const Lexer::Entry& entry : entries) {
    spent |= lexer_.is_none(entry.terminal);
    least = std::min(least, grammar_.token_limit(entry.terminal));
  }
  const bool limited = least != unbounded || spent;
  const bool fits = !limited || (!spent && place.used + 1 < least && worst_rest(place.lexer) <= least - place.used - 1);
  if (fits && all_easy()) return;
  for (const LexemeEnd& end : ends_.of(place.lexer)) {
    end.tokens->add_to(inside);
    if (fits) continue;
    Place after{end.lexer, place.set, TextId::empty, false, place.track, place.used + 1};
    if (settle(after)) continue;
    Bitmask group(words.size());
    end.tokens->add_to(group);
    for (size_t i = 0; i < words.size(); ++i) group[i] &= words[i];
    each_token(group, [&](uint32_t token) { out.add({&token, 1}, words.size()); });
  }
}

TokenLimits::Refused TokenLimits::find_refused(const Place& place, std::span<const uint32_t> words) {
  Refused refused;
  TokenSet& out = refused.tokens;
  Bitmask inside(words.size());
  if (place.lexer != LexId::dead) refuse_inside(place, words, inside, out);
  if (all_easy()) return refused;
  Bitmask leaving(words.begin(), words.end());
  for (size_t i = 0; i < words.size(); ++i) leaving[i] &= ~inside[i];
  each_token(leaving, [&](uint32_t token) {
    Place next = place;
    if (!vocabulary_.is_eos(token) && !take(next, vocabulary_.token(token))) out.add({&token, 1}, words.size());
  });
  return refused;
}

// Verifies tokens of one byte one by one; all others are refused.
TokenLimits::Refused TokenLimits::verify(const Place& place, std::span<const uint32_t> words, LimitSet limits) {
  Refused refused{{}, limits};
  each_token(words, [&](uint32_t token) {
    if (vocabulary_.is_eos(token)) return;
    const std::string_view bytes = vocabulary_.token(token);
    Place next = place;
    bool taken = false;
    try {
      taken = bytes.size() == 1 && take(next, bytes);
    } catch (const LimitError&) {  // not verified
    }
    if (!taken) refused.tokens.add({&token, 1}, words.size());
  });
  return refused;
}

const TokenLimits::Refused* TokenLimits::refused(const Place& place, std::span<const uint32_t> words) {
  if (!any()) return nullptr;
  const Hash id = key(place);
  if (const uint32_t* found = refused_ids_.find(id)) return *found == 0 ? nullptr : refused_[*found - 1].get();
  Refused found;
  try {
    const Stepping::Scope scope = stepping_.for_mask();
    found = find_refused(place, words);
  } catch (const LimitError& error) {
    found = verify(place, words, LimitSet(error.limit));
  }
  const bool some = !found.tokens.empty();
  if (some) {
    bytes_ += found.tokens.memory_bytes() + sizeof(Refused);
    refused_.push_back(std::make_unique<const Refused>(std::move(found)));
  }
  refused_ids_.insert(id, some ? static_cast<uint32_t>(refused_.size()) : 0);
  return some ? refused_.back().get() : nullptr;
}

// Ways to finish ----------------------------------------------------------------------------------------------------

// A token that begins in a lexeme with a limit ends in it.
Vocabulary::Spelling TokenLimits::spell(const Place& place, std::string text, const Vocabulary::Spelling* like) {
  if (!any()) return vocabulary_.spell(std::move(text), like);
  std::vector<uint32_t> borders;
  Place at = place;
  uint32_t begun = 0;
  const auto end_lexeme = [&](LexId lexer, uint32_t end) {
    const std::vector<Lexer::Entry> entries = lexer_.copy_of_entries(lexer);
    if (std::none_of(entries.begin(), entries.end(), [this](const Lexer::Entry& entry) { return has_limit(entry.terminal); })) return;
    for (uint32_t border : {begun, end}) {
      if (border > 0 && (borders.empty() || borders.back() != border)) borders.push_back(border);
    }
  };
  for (uint32_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if (lexer_.step(at.lexer, byte) == LexId::dead) {
      end_lexeme(at.lexer, i);
      begun = i;
    }
    if (!stepping_.step(at, byte)) return {std::move(text), {Vocabulary::no_spelling}};
  }
  end_lexeme(at.lexer, static_cast<uint32_t>(text.size()));
  Vocabulary::Spelling spelling = vocabulary_.spell(std::move(text), like, std::move(borders));
  if (spelling.counts[0] != Vocabulary::no_spelling && !ends_whole(place, spelling)) spelling.counts[0] = Vocabulary::no_spelling;
  return spelling;
}

bool TokenLimits::ends_whole(const Place& place, const Vocabulary::Spelling& spelling) {
  Place at = place;
  for (size_t i = 0; i < spelling.text.size();) {
    const size_t border = border_length(std::string_view(spelling.text).substr(i));
    const std::string_view read = border ? std::string_view(spelling.text).substr(i, border) : vocabulary_.token(vocabulary_.first_token(spelling, i));
    if (!(border ? stepping_.step(at, read) : take(at, read))) return false;
    i += read.size();
  }
  return stepping_.accepting(at);
}

}  // namespace constrain
