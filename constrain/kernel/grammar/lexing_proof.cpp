// Proof that longest-match lexing, of Lark grammars for example, never leads to a dead end.
//
// Shown for every place of a terminal T and every terminal V that may follow: V (or an ignored terminal, and V after
// it) can begin with a byte that no terminal read in parallel with T can take once T is matched. Then every way through
// the rules has a text that is lexed that way, and a live state can be completed. The test is sufficient, not
// necessary: callers are not distinguished, and terminals read in parallel with T are considered pair by pair. It first
// ignores long counts, with which expressions have many derivatives; only where it fails does it consider counts and
// single bytes. For a lossless lexing, V must begin with such a byte in every case. Terminals are self-delimiting if this
// holds without ignored terminals in between; completions have none between lexemes, so what ends in front of an ignored
// terminal does not matter.
//
// Where a lazy terminal matches, the lexeme ends, so any V may follow it. Of other terminals, only texts count in which
// no lazy terminal read in parallel matches first.
//
// For grammars of thousands of terminals see rule_places.h (places) and terminal_groups.h (groups, joint automaton).
#include <algorithm>
#include <array>
#include <deque>
#include <optional>

#include "base/errors.h"
#include "grammar/grammar.h"
#include "grammar/rule_places.h"
#include "grammar/terminal_groups.h"

namespace constrain {

namespace {

constexpr size_t max_paired_terminals = 100;     // up to these, pairs are compared; more are followed all together
constexpr size_t max_edge_pairs = 10'000'000;    // followed in parallel; beyond, any two terminals may meet
constexpr size_t max_overlaps = 4'000'000;       // pairs of terminals that may match one text; beyond them, the same
constexpr size_t pair_state_work = 40;           // steps that a state of two parallel terminals counts as

class Proof {
 public:
  enum class Claim { no_dead_end, lossless, self_delimiting };

  Proof(Grammar& grammar, Claim claim)
      : grammar_(grammar), claim_(claim), count_(grammar.terminals.size()), places_(grammar, work_), groups_(grammar), begins_(2 * count_),
        ends_(count_), foreign_(count_) {
    for (ExprId terminal : grammar.terminals) coarse_.push_back(coarse(terminal));
    if (count_ > max_paired_terminals) {
      joint_.emplace();
      if (!joint_->follow(grammar.expressions, coarse_, work_)) joint_.reset();
    }
    groups_.find(grammar, places_);
    groups_.allocate(work_);
    if (!find_partners() || !follow_pairs()) groups_.merge();
    for (uint32_t t : grammar.ignored) {
      for (uint32_t group = 0; group < groups_.count(); ++group) groups_.meet(groups_.of(t), group);
    }
  }

  // Calls f(terminal, follower) for each conflict found, until it returns false.
  template <typename F>
  void each_conflict(F&& f) {
    for (uint32_t ignored : grammar_.ignored) {
      const std::optional<uint32_t> follower = conflict_of_ignored(ignored);
      if (follower && !f(ignored, *follower)) return;
    }
    FlatMap<uint64_t, uint8_t> done;
    for (const Edge& edge : grammar_.edges) {
      if (edge.kind != EdgeKind::terminal) continue;
      const uint32_t place = places_.of(edge.target);
      const uint64_t key = paired(edge.symbol, place);
      if (done.find(key)) continue;
      done.insert(key, 1);
      if (readable(edge.symbol) == ExprId::nothing) {
        if (!f(edge.symbol, edge.symbol)) return;
        continue;
      }
      for (const Edge* follower : followers(place)) {
        if (are_apart(edge.symbol, follower->symbol, follower->excluding >= 0)) continue;
        if (!f(edge.symbol, follower->symbol)) return;
        break;  // others would name the same terminal
      }
    }
  }

  // Claims another property from here on. What is known of terminals and places stays.
  void claim(Claim claim) { claim_ = claim; }

  // The terminals that may go on in place of a follower of `t`: those read in parallel with it, and itself.
  std::vector<uint32_t> going_on(uint32_t t) {
    std::vector<uint32_t> result{t};
    work_.spend(count_);
    for (uint32_t u = 0; u < count_; ++u) {
      if (u != t && groups_.in_parallel(t, u)) result.push_back(u);
    }
    return result;
  }

 private:
  // Of the edges that may follow at a place, one for each way to begin.
  const std::vector<const Edge*>& followers(uint32_t place) {
    followers_.resize(places_.count());
    std::optional<std::vector<const Edge*>>& found = followers_[place];
    if (!found) {
      found.emplace();
      FlatMap<Hash, uint8_t> known;
      for (uint32_t i : places_.edges(place)) {
        const Edge& edge = grammar_.edges[i];
        const Hash way = begins(edge.symbol, edge.excluding >= 0).hash(begins(edge.symbol, false).hash(seeded(0)));
        if (known.find(way)) continue;
        known.insert(way, 1);
        found->push_back(&edge);
      }
    }
    return *found;
  }

  // Finds the terminals to compare each terminal with: those that begin alike. Returns false if they are too many.
  bool find_partners() {
    partners_.resize(count_);
    size_t found = 0;
    auto add = [&](uint32_t t, uint32_t u) {
      partners_[t].push_back(u);
      ++found;
    };
    if (joint_) {  // those that match one text
      for (size_t i = 0; i < joint_->states(); ++i) {
        std::vector<uint32_t> matched;
        for (const JointAutomaton::Entry& entry : joint_->entries(i)) {
          if (grammar_.expressions.nullable(entry.rest)) matched.push_back(entry.terminal);
        }
        if (found + matched.size() * matched.size() > max_overlaps) return false;
        work_.spend(joint_->entries(i).size() + matched.size() * matched.size());
        for (uint32_t t : matched) {
          for (uint32_t u : matched) {
            if (t != u) add(t, u);
          }
        }
      }
      for (std::vector<uint32_t>& list : partners_) {
        std::sort(list.begin(), list.end());
        list.erase(std::unique(list.begin(), list.end()), list.end());
      }
      return true;
    }
    for (uint32_t t = 0; t < count_; ++t) {
      if (found + count_ > max_overlaps) return false;
      work_.spend(count_);
      for (uint32_t u = 0; u < count_; ++u) {
        if (t != u && begin_alike(t, u)) add(t, u);
      }
    }
    return true;
  }

  bool begin_alike(uint32_t t, uint32_t u) {
    ExpressionStore& store = grammar_.expressions;
    return store.first(grammar_.terminals[t]).intersects(store.first(grammar_.terminals[u]));
  }

  // What may be read at a place: terminals in ascending order, and the places after them.
  struct Reading {
    uint32_t terminal, target;
    auto operator<=>(const Reading&) const = default;
  };

  const std::vector<Reading>& reading(uint32_t place) {
    readings_.resize(places_.count());
    std::optional<std::vector<Reading>>& found = readings_[place];
    if (!found) {
      found.emplace();
      for (uint32_t i : places_.edges(place)) {
        found->push_back({grammar_.edges[i].symbol, places_.of(grammar_.edges[i].target)});
      }
      std::sort(found->begin(), found->end());
      found->erase(std::unique(found->begin(), found->end()), found->end());
    }
    return *found;
  }

  // Follows, from the start, two ways through the rules that read the same lexemes; false if there are too many.
  bool follow_pairs() {
    FlatMap<uint64_t, uint8_t> seen;
    std::vector<std::pair<uint32_t, uint32_t>> pending;
    const uint32_t start = places_.of(grammar_.rules[0].start);
    pending.emplace_back(start, start);
    seen.insert(paired(start, start), 1);
    size_t followed = 0;
    const size_t work_before = grammar_.expressions.steps();
    while (!pending.empty()) {
      auto [a, b] = pending.back();
      pending.pop_back();
      const std::vector<uint32_t> ones = groups_at(a), twos = groups_at(b);
      followed += groups_.meet_all(ones, twos);
      for (const Reading& one : reading(a)) {
        each_partner(one.terminal, reading(b), [&](const Reading& two) {
          const auto [x, y] = std::minmax({one.target, two.target});
          const uint64_t pair = paired(x, y);
          if (seen.find(pair) || !overlap(one.terminal, two.terminal)) return;
          seen.insert(pair, 1);
          pending.emplace_back(x, y);
        });
        followed += std::min(partners_[one.terminal].size(), reading(b).size());
        if (followed > max_edge_pairs || grammar_.expressions.steps() > work_before + JointAutomaton::max_overlap_work) return false;
      }
      if (followed > max_edge_pairs) return false;
    }
    work_.spend(followed);
    return true;
  }

  // The terminals that may be read at a place and may match a text of `t`.
  template <typename F>
  void each_partner(uint32_t t, const std::vector<Reading>& there, F&& f) {
    const std::vector<uint32_t>& partners = partners_[t];
    auto each_of = [&](uint32_t u) {
      for (auto at = std::lower_bound(there.begin(), there.end(), Reading{u, 0}); at != there.end() && at->terminal == u; ++at) f(*at);
    };
    if (partners.size() <= there.size()) {
      each_of(t);
      for (uint32_t u : partners) each_of(u);
      return;
    }
    for (const Reading& each : there) {
      if (each.terminal == t || std::binary_search(partners.begin(), partners.end(), each.terminal)) f(each);
    }
  }

  std::vector<uint32_t> groups_at(uint32_t place) {
    std::vector<uint32_t> result;
    for (const Reading& each : reading(place)) result.push_back(groups_.of(each.terminal));
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
  }

  // Whether one text may match both.
  bool overlap(uint32_t t, uint32_t u) {
    if (t == u) return true;
    const uint64_t key = paired(std::min(t, u), std::max(t, u));
    if (const uint8_t* found = overlaps_.find(key)) return *found;
    ExpressionStore& store = grammar_.expressions;
    bool result = begin_alike(t, u);
    try {
      result = result && (joint_ || store.intersection({coarse_[t], coarse_[u]}) != ExprId::nothing) &&
               store.intersection({grammar_.terminals[t], grammar_.terminals[u]}) != ExprId::nothing;
    } catch (const UndecidedError&) {  // undecided counts as yes
    }
    overlaps_.insert(key, result);
    return result;
  }

  // An expression with all texts of a terminal, and perhaps more.
  ExprId coarse(ExprId terminal) {
    ExpressionStore& store = grammar_.expressions;
    try {
      const ExprId more = grammar_.long_counts.without(store, terminal);
      if (!store.nullable(more)) return more;
      return store.intersection({more, store.repetition(store.bytes(ByteSet::all()), 1, unbounded)});
    } catch (const UndecidedError&) {
      return terminal;
    }
  }

  // The rests of `u` at all points where `t`, begun with it, is matched; both are from `expressions`.
  template <typename F>
  void each_rest(const std::vector<ExprId>& expressions, uint32_t t, uint32_t u, F&& f) {
    ExpressionStore& store = grammar_.expressions;
    std::vector<std::pair<ExprId, ExprId>> work{{expressions[t], expressions[u]}};
    FlatMap<uint64_t, uint8_t> seen;
    for (size_t i = 0; i < work.size(); ++i) {
      if (work.size() > MAX_PAIR_STATES.value) {
        throw LimitError(limit_message("terminals " + name(t) + " and " + name(u) + " are too complex to compare", MAX_PAIR_STATES));
      }
      work_.spend(pair_state_work);
      auto [a, b] = work[i];
      if (store.nullable(a)) f(b);
      ByteSet possible = store.first(a) & store.first(b);
      for (uint8_t byte : store.representatives({a, b})) {
        if (!possible.contains(byte)) continue;
        ExprId next_a = store.derivative(a, byte), next_b = store.derivative(b, byte);
        uint64_t pair = paired(next_a, next_b);
        if (next_a == ExprId::nothing || next_b == ExprId::nothing || seen.find(pair)) continue;
        seen.insert(pair, 1);
        work.emplace_back(next_a, next_b);
      }
    }
  }

  // Bytes that `u` may take when `t`, begun with it, is matched; perhaps a few too many.
  ByteSet taken(uint32_t t, uint32_t u) {
    uint64_t key = paired(t, u);
    if (const uint32_t* found = taken_ids_.find(key)) return taken_[*found];
    ByteSet result;
    each_rest(coarse_, t, u, [&](ExprId rest) { result = result | grammar_.expressions.first(rest); });
    taken_ids_.insert(key, static_cast<uint32_t>(taken_.size()));
    taken_.push_back(result);
    return result;
  }

  // Bytes that end terminal `t`, whichever terminals are read in parallel.
  ByteSet ends(uint32_t t) {
    if (joint_ && taken_in_parallel_.empty()) find_taken();
    if (!ends_[t]) {
      ByteSet no = taken(t, t);
      if (joint_) {
        no = no | taken_in_parallel_[t];
      } else {
        for (uint32_t u = 0; u < count_; ++u) {
          if (may_continue(t, u)) no = no | taken(t, u);
        }
      }
      ends_[t] = others(no);
    }
    return *ends_[t];
  }

  // Whether `u` may be read in parallel with `t`, and begins alike.
  bool may_continue(uint32_t t, uint32_t u) {
    work_.spend(1);
    return u != t && groups_.in_parallel(t, u) && begin_alike(t, u);
  }

  static ByteSet others(const ByteSet& bytes) {
    ByteSet result;
    for (unsigned b = 0; b < 256; ++b) {
      if (!bytes.contains(static_cast<uint8_t>(b))) result.add(static_cast<uint8_t>(b));
    }
    return result;
  }

  // For all terminals: bytes that parallel terminals may take when the terminal is matched; perhaps a few too many.
  void find_taken() {
    ExpressionStore& store = grammar_.expressions;
    taken_in_parallel_.resize(count_);
    std::vector<ByteSet> onward(groups_.count());  // by group: bytes that its terminals may take
    for (size_t i = 0; i < joint_->states(); ++i) {
      std::vector<uint32_t> groups, matched;
      for (const JointAutomaton::Entry& entry : joint_->entries(i)) {
        const uint32_t group = groups_.of(entry.terminal);
        if (store.nullable(entry.rest)) matched.push_back(entry.terminal);
        const ByteSet first = store.first(entry.rest);
        if (first.empty()) continue;
        if (onward[group].empty()) groups.push_back(group);
        onward[group] = onward[group] | first;
      }
      work_.spend(joint_->entries(i).size() + matched.size() * groups.size());
      for (uint32_t t : matched) {
        for (uint32_t group : groups) {
          if (groups_.may_meet(groups_.of(t), group)) taken_in_parallel_[t] = taken_in_parallel_[t] | onward[group];
        }
      }
      for (uint32_t group : groups) onward[group] = ByteSet{};
    }
  }

  const std::vector<uint32_t>& lazy_terminals() {
    if (!lazy_terminals_) {
      lazy_terminals_.emplace();
      for (uint32_t t = 0; t < count_; ++t) {
        if (grammar_.lazy[t]) lazy_terminals_->push_back(t);
      }
    }
    return *lazy_terminals_;
  }

  // The texts of a terminal in which no lazy terminal that is read in parallel matches first.
  ExprId readable(uint32_t t) {
    readable_.resize(count_);
    if (!readable_[t]) {
      ExpressionStore& store = grammar_.expressions;
      std::vector<ExprId> parts{grammar_.terminals[t]};
      for (const uint32_t u : lazy_terminals()) {
        if (u == t || !groups_.in_parallel(t, u) || !begin_alike(t, u)) continue;
        const ExprId after = store.repetition(store.bytes(ByteSet::all()), grammar_.lazy[t] ? 1 : 0, unbounded);
        parts.push_back(store.complement(store.concatenation(grammar_.terminals[u], after)));
      }
      work_.spend(lazy_terminals().size());
      readable_[t] = parts.size() == 1 ? parts[0] : store.intersection(std::move(parts));
    }
    return *readable_[t];
  }

  // Bytes with which `t` may begin; if texts of `t` are excluded, only bytes with infinitely many continuations.
  const ByteSet& begins(uint32_t t, bool excluding) {
    std::optional<ByteSet>& found = begins_[2 * t + excluding];
    if (!found) {
      found.emplace();
      ExpressionStore& store = grammar_.expressions;
      const ExprId own = readable(t);
      store.first(own).each([&](uint8_t byte) {
        ExprId rest = store.derivative(own, byte);
        if (rest != ExprId::nothing && (!excluding || store.infinite(rest))) found->add(byte);
      });
    }
    return *found;
  }

  // Exactly those of `bytes` that end terminal `t`.
  ByteSet exact_ends(uint32_t t, const ByteSet& bytes) {
    ExpressionStore& store = grammar_.expressions;
    ByteSet left = bytes;
    auto take = [&](ExprId rest) {
      ByteSet still;
      left.each([&](uint8_t byte) {
        if (store.derivative(rest, byte) == ExprId::nothing) still.add(byte);
      });
      left = still;
    };
    for (uint32_t u = 0; u < count_; ++u) {
      if ((u == t || may_continue(t, u)) && left.intersects(taken(t, u))) each_rest(grammar_.terminals, t, u, take);
    }
    return left;
  }

  // Some of the bytes that end terminal `t`: those that no parallel terminal takes anywhere.
  const ByteSet& foreign(uint32_t t) {
    if (!foreign_[t]) {
      ExpressionStore& store = grammar_.expressions;
      ByteSet taken = store.alphabet(grammar_.terminals[t]);
      store.first(grammar_.terminals[t]).each([&](uint8_t byte) { taken = taken | parallel_alphabet(groups_.of(t), byte); });
      foreign_[t] = others(taken);
    }
    return *foreign_[t];
  }

  // The bytes anywhere in terminals that begin with a given byte and are read in parallel with those of a group.
  const ByteSet& parallel_alphabet(uint32_t group, uint8_t byte) {
    if (!alphabets_known_) find_alphabets();
    const uint64_t key = (uint64_t{group} << 8) | byte;
    if (const uint32_t* found = alphabet_ids_.find(key)) return parallel_alphabets_[*found];
    work_.spend(alphabets_[byte].size());
    ByteSet result;
    for (const auto& [other, alphabet] : alphabets_[byte]) {
      if (groups_.may_meet(group, other)) result = result | alphabet;
    }
    alphabet_ids_.insert(key, static_cast<uint32_t>(parallel_alphabets_.size()));
    parallel_alphabets_.push_back(result);
    return parallel_alphabets_.back();
  }

  void find_alphabets() {
    alphabets_known_ = true;
    ExpressionStore& store = grammar_.expressions;
    FlatMap<uint64_t, uint32_t> known;
    for (uint32_t t = 0; t < count_; ++t) {
      const ByteSet alphabet = store.alphabet(grammar_.terminals[t]);
      store.first(grammar_.terminals[t]).each([&](uint8_t byte) {
        auto& of_byte = alphabets_[byte];
        const uint64_t key = (uint64_t{groups_.of(t)} << 8) | byte;
        const uint32_t* found = known.find(key);
        if (!found) {
          known.insert(key, static_cast<uint32_t>(of_byte.size()));
          of_byte.emplace_back(groups_.of(t), alphabet);
        } else {
          of_byte[*found].second = of_byte[*found].second | alphabet;
        }
      });
    }
  }

  bool every_byte() const { return claim_ != Claim::no_dead_end; }

  bool separates(uint32_t t, uint32_t follower, bool excluding, bool exact = false) {
    work_.spend(1);
    const ByteSet& all = begins(follower, false);
    if (every_byte() ? (foreign(t) & all) == all : foreign(t).intersects(begins(follower, excluding))) return true;
    ByteSet end = exact ? exact_ends(t, all) : ends(t) & all;
    if (every_byte()) return end == all;
    // the rest of a follower with excluded texts always begins with one of `all`
    return end.intersects(begins(follower, excluding)) || end == all;
  }

  bool are_apart(uint32_t t, uint32_t follower, bool excluding) {
    if (grammar_.lazy[t]) return true;
    for (bool exact : {false, true}) {
      if (separates(t, follower, excluding, exact)) return true;
      if (claim_ == Claim::self_delimiting) continue;
      for (uint32_t ignored : grammar_.ignored) {
        if (separates(t, ignored, false, exact) && separates(ignored, follower, excluding, exact)) return true;
      }
    }
    return false;
  }

  // The first terminal that an ignored lexeme before it may take: the same may follow it as may stand in its place.
  std::optional<uint32_t> conflict_of_ignored(uint32_t ignored) {
    FlatMap<uint64_t, uint8_t> done;
    for (const Edge& edge : grammar_.edges) {
      const uint64_t key = (uint64_t{edge.symbol} << 1) | (edge.excluding >= 0);
      if (edge.kind != EdgeKind::terminal || done.find(key)) continue;
      done.insert(key, 1);
      if (separates(ignored, edge.symbol, edge.excluding >= 0)) continue;
      if (!separates(ignored, edge.symbol, edge.excluding >= 0, true)) return edge.symbol;
    }
    return std::nullopt;
  }

  const std::string& name(uint32_t t) const { return grammar_.terminal_names[t]; }

  Grammar& grammar_;
  Claim claim_;
  size_t count_;
  ProofWork work_;
  RulePlaces places_;
  TerminalGroups groups_;
  std::optional<JointAutomaton> joint_;  // of the coarse expressions; without it, terminals are compared pair by pair
  std::vector<ExprId> coarse_;  // by terminal
  std::vector<std::vector<uint32_t>> partners_;  // by terminal: others that may match one of its texts
  std::vector<std::optional<std::vector<Reading>>> readings_;        // by place, once known
  std::vector<std::optional<std::vector<const Edge*>>> followers_;  // by place, once known
  FlatMap<uint64_t, uint8_t> overlaps_;  // by pair of terminals
  FlatMap<uint64_t, uint32_t> taken_ids_;
  std::vector<ByteSet> taken_;
  std::vector<ByteSet> taken_in_parallel_;             // by terminal, if terminals are followed all together
  bool alphabets_known_ = false;
  std::array<std::vector<std::pair<uint32_t, ByteSet>>, 256> alphabets_;  // by first byte: the alphabets of groups
  FlatMap<uint64_t, uint32_t> alphabet_ids_;  // by group and first byte
  std::deque<ByteSet> parallel_alphabets_;
  std::vector<std::optional<ByteSet>> begins_, ends_, foreign_;  // by terminal, once known
  std::vector<std::optional<ExprId>> readable_;                 // by terminal, once known
  std::optional<std::vector<uint32_t>> lazy_terminals_;         // once known
};

}  // namespace

std::optional<LexingConflict> find_lexing_conflict(Grammar& grammar, bool lossless) {
  Proof proof(grammar, lossless ? Proof::Claim::lossless : Proof::Claim::no_dead_end);
  std::optional<LexingConflict> found;
  proof.each_conflict([&](uint32_t terminal, uint32_t follower) {
    found = {terminal, follower, proof.going_on(terminal)};
    return false;
  });
  return found;
}

std::vector<uint32_t> find_conflicting_terminals(Grammar& grammar, bool lossless) {
  Proof proof(grammar, lossless ? Proof::Claim::lossless : Proof::Claim::no_dead_end);
  std::vector<uint8_t> is_found(grammar.terminals.size());
  proof.each_conflict([&](uint32_t terminal, uint32_t) {
    if (!is_found[terminal]) {
      for (uint32_t each : proof.going_on(terminal)) is_found[each] = 1;
    }
    return true;
  });
  std::vector<uint32_t> found;
  for (uint32_t t = 0; t < is_found.size(); ++t) {
    if (is_found[t]) found.push_back(t);
  }
  return found;
}

namespace {

bool holds(Proof& proof, Proof::Claim claim) {
  proof.claim(claim);
  bool found = true;
  proof.each_conflict([&](uint32_t, uint32_t) { return found = false; });
  return found;
}

// Whether lexemes may end otherwise than by the byte after them.
bool ends_otherwise(const Grammar& grammar) {
  const auto counted = [](uint32_t limit) { return limit != unbounded; };
  return std::any_of(grammar.token_limits.begin(), grammar.token_limits.end(), counted) ||
         std::any_of(grammar.lazy.begin(), grammar.lazy.end(), [](bool lazy) { return lazy; });
}

}  // namespace

LexingClaims find_lexing_claims(Grammar& grammar) {
  try {
    Proof proof(grammar, Proof::Claim::self_delimiting);
    // Where a terminal ends by itself in front of every byte that may follow, it also does in front of some.
    if (!ends_otherwise(grammar) && holds(proof, Proof::Claim::self_delimiting)) return {true, true};
    return {holds(proof, Proof::Claim::no_dead_end), false};
  } catch (const LimitError&) {  // the two claims have one limit on work, which is enough for either
  }
  grammar.expressions.work().allow({MAX_COMPILE_WORK.value, &MAX_COMPILE_WORK});
  try {
    return {!find_lexing_conflict(grammar), false};
  } catch (const LimitError&) {  // not known
    return {};
  }
}

}  // namespace constrain
