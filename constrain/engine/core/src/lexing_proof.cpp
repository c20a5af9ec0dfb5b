// Proof that longest-match lexing strands nothing.
//
// Shown, for every place a terminal T may stand at and every terminal V that may follow: V (or an ignored terminal, and V
// after that) can begin with a byte that nothing read beside T can take once T is matched. Then every way through the
// rules has a text that is lexed that way, and a live state can be completed. The test is sufficient, not necessary:
// callers are not told apart, and what may be read beside T is taken pair by pair. It is made without long counts first,
// with which expressions have many derivatives; these, and the bytes that may follow one by one, are looked at where it
// fails.
//
// Thousands of terminals are told apart by places (rule_places.h), groups and a joint automaton (terminal_groups.h).
#include <algorithm>
#include <array>
#include <deque>
#include <optional>

#include "errors.h"
#include "grammar.h"
#include "rule_places.h"
#include "terminal_groups.h"

namespace constrain {

namespace {

constexpr size_t max_paired_terminals = 100;     // up to these, each two are compared; more are followed all together
constexpr size_t max_edge_pairs = 10'000'000;    // that are followed side by side; beyond, any two terminals may meet
constexpr size_t max_overlaps = 4'000'000;       // pairs of terminals that may match one text; likewise
constexpr size_t pair_state_work = 40;           // steps that a state of two terminals read side by side counts for

class Proof {
 public:
  explicit Proof(Grammar& grammar)
      : grammar_(grammar), count_(grammar.terminals.size()), places_(grammar, work_), groups_(grammar), begins_(2 * count_),
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

  void run() {
    for (uint32_t ignored : grammar_.ignored) check_ignored(ignored);
    FlatMap<uint64_t, uint8_t> done;
    for (const Edge& edge : grammar_.edges) {
      if (edge.kind != EdgeKind::terminal) continue;
      const uint32_t place = places_.of(edge.target);
      const uint64_t key = paired(edge.symbol, place);
      if (done.find(key)) continue;
      done.insert(key, 1);
      for (const Edge* follower : followers(place)) check(edge.symbol, follower->symbol, follower->excluding >= 0);
    }
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

  // Which terminals a terminal may have to be compared with: those that begin like it. False if these are too many.
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

  // From the start, two ways through the rules that read the same lexemes; false if these are too many to follow.
  bool follow_pairs() {
    FlatMap<uint64_t, uint8_t> seen;
    std::vector<std::pair<uint32_t, uint32_t>> pending;
    const uint32_t start = places_.of(grammar_.rules[0].start);
    pending.emplace_back(start, start);
    seen.insert(paired(start, start), 1);
    size_t followed = 0;
    const size_t work_before = grammar_.expressions.work();
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
        if (followed > max_edge_pairs || grammar_.expressions.work() > work_before + JointAutomaton::max_overlap_work) return false;
      }
      if (followed > max_edge_pairs) return false;
    }
    work_.spend(followed);
    return true;
  }

  // What may be read at a place and may match a text of `t`.
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

  // May one text match both?
  bool overlap(uint32_t t, uint32_t u) {
    if (t == u) return true;
    const uint64_t key = paired(std::min(t, u), std::max(t, u));
    if (const uint8_t* found = overlaps_.find(key)) return *found;
    ExpressionStore& store = grammar_.expressions;
    bool result = begin_alike(t, u);
    try {
      result = result && (joint_ || store.intersection({coarse_[t], coarse_[u]}) != ExprId::nothing) &&
               store.intersection({grammar_.terminals[t], grammar_.terminals[u]}) != ExprId::nothing;
    } catch (const UndecidedError&) {  // it may be
    }
    overlaps_.insert(key, result);
    return result;
  }

  // What has all texts of a terminal, and maybe more.
  ExprId coarse(ExprId terminal) {
    ExpressionStore& store = grammar_.expressions;
    try {
      const ExprId more = store.without_counts(terminal);
      if (!store.nullable(more)) return more;
      return store.intersection({more, store.repetition(store.bytes(ByteSet::all()), 1, unbounded)});
    } catch (const UndecidedError&) {
      return terminal;
    }
  }

  // What is left of `u` wherever `t`, begun with it, is matched; the terminals are those of `expressions`.
  template <typename F>
  void each_rest(const std::vector<ExprId>& expressions, uint32_t t, uint32_t u, F&& f) {
    ExpressionStore& store = grammar_.expressions;
    std::vector<std::pair<ExprId, ExprId>> work{{expressions[t], expressions[u]}};
    FlatMap<uint64_t, uint8_t> seen;
    for (size_t i = 0; i < work.size(); ++i) {
      if (work.size() > MAX_PAIR_STATES.value) {
        throw LimitError(limit_message("terminals " + name(t) + " and " + name(u) + " are too complex to be told apart", MAX_PAIR_STATES));
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

  // Bytes that `u` may take when `t`, begun with it, is matched; maybe a few too many.
  ByteSet taken(uint32_t t, uint32_t u) {
    uint64_t key = paired(t, u);
    if (const uint32_t* found = taken_ids_.find(key)) return taken_[*found];
    ByteSet result;
    each_rest(coarse_, t, u, [&](ExprId rest) { result = result | grammar_.expressions.first(rest); });
    taken_ids_.insert(key, static_cast<uint32_t>(taken_.size()));
    taken_.push_back(result);
    return result;
  }

  // Bytes that end terminal `t`, whatever is read beside it.
  ByteSet ends(uint32_t t) {
    if (joint_ && taken_beside_.empty()) find_taken();
    if (!ends_[t]) {
      ByteSet no = taken(t, t);
      if (joint_) {
        no = no | taken_beside_[t];
      } else {
        for (uint32_t u = 0; u < count_; ++u) {
          if (may_continue(t, u)) no = no | taken(t, u);
        }
      }
      ends_[t] = others(no);
    }
    return *ends_[t];
  }

  // Whether `u` may be read beside `t`, and begins like it.
  bool may_continue(uint32_t t, uint32_t u) {
    work_.spend(1);
    return u != t && groups_.beside(t, u) && begin_alike(t, u);
  }

  static ByteSet others(const ByteSet& bytes) {
    ByteSet result;
    for (unsigned b = 0; b < 256; ++b) {
      if (!bytes.contains(static_cast<uint8_t>(b))) result.add(static_cast<uint8_t>(b));
    }
    return result;
  }

  // For all terminals: bytes that those beside it may take when it, begun with them, is matched; maybe a few too many.
  void find_taken() {
    ExpressionStore& store = grammar_.expressions;
    taken_beside_.resize(count_);
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
          if (groups_.may_meet(groups_.of(t), group)) taken_beside_[t] = taken_beside_[t] | onward[group];
        }
      }
      for (uint32_t group : groups) onward[group] = ByteSet{};
    }
  }

  // Bytes with which `t` may begin; of a terminal some texts of which are excluded, those with endless continuations.
  const ByteSet& begins(uint32_t t, bool excluding) {
    std::optional<ByteSet>& found = begins_[2 * t + excluding];
    if (!found) {
      found.emplace();
      ExpressionStore& store = grammar_.expressions;
      store.first(grammar_.terminals[t]).each([&](uint8_t byte) {
        ExprId rest = store.derivative(grammar_.terminals[t], byte);
        if (rest != ExprId::nothing && (!excluding || store.infinite(rest))) found->add(byte);
      });
    }
    return *found;
  }

  // Those of `bytes` that end terminal `t`, and no others.
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

  // Some of the bytes that end terminal `t`: those that nothing read beside it takes anywhere.
  const ByteSet& foreign(uint32_t t) {
    if (!foreign_[t]) {
      ExpressionStore& store = grammar_.expressions;
      ByteSet taken = store.alphabet(grammar_.terminals[t]);
      store.first(grammar_.terminals[t]).each([&](uint8_t byte) { taken = taken | alphabet_beside(groups_.of(t), byte); });
      foreign_[t] = others(taken);
    }
    return *foreign_[t];
  }

  // What terminals take anywhere that begin with a byte and are read beside those of a group.
  const ByteSet& alphabet_beside(uint32_t group, uint8_t byte) {
    if (!alphabets_known_) find_alphabets();
    const uint64_t key = (uint64_t{group} << 8) | byte;
    if (const uint32_t* found = alphabet_ids_.find(key)) return alphabets_beside_[*found];
    work_.spend(alphabets_[byte].size());
    ByteSet result;
    for (const auto& [other, alphabet] : alphabets_[byte]) {
      if (groups_.may_meet(group, other)) result = result | alphabet;
    }
    alphabet_ids_.insert(key, static_cast<uint32_t>(alphabets_beside_.size()));
    alphabets_beside_.push_back(result);
    return alphabets_beside_.back();
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

  bool separates(uint32_t t, uint32_t follower, bool excluding, bool exact = false) {
    work_.spend(1);
    if (foreign(t).intersects(begins(follower, excluding))) return true;
    const ByteSet& all = begins(follower, false);
    ByteSet end = exact ? exact_ends(t, all) : ends(t) & all;
    // whatever is left of a follower some texts of which are excluded begins with one of `all`
    return end.intersects(begins(follower, excluding)) || end == all;
  }

  void check(uint32_t t, uint32_t follower, bool excluding) {
    for (bool exact : {false, true}) {
      if (separates(t, follower, excluding, exact)) return;
      for (uint32_t ignored : grammar_.ignored) {
        if (separates(t, ignored, false, exact) && separates(ignored, follower, excluding, exact)) return;
      }
    }
    refuse(t, follower);
  }

  // An ignored lexeme may be followed by whatever may stand where it stands.
  void check_ignored(uint32_t ignored) {
    FlatMap<uint64_t, uint8_t> done;
    for (const Edge& edge : grammar_.edges) {
      const uint64_t key = (uint64_t{edge.symbol} << 1) | (edge.excluding >= 0);
      if (edge.kind != EdgeKind::terminal || done.find(key)) continue;
      done.insert(key, 1);
      if (separates(ignored, edge.symbol, edge.excluding >= 0)) continue;
      if (!separates(ignored, edge.symbol, edge.excluding >= 0, true)) refuse(ignored, edge.symbol);
    }
  }

  [[noreturn]] void refuse(uint32_t t, uint32_t follower) {
    std::vector<uint32_t> beside{t};
    for (uint32_t u = 0; u < count_; ++u) {
      if (u != t && groups_.beside(t, u)) beside.push_back(u);
    }
    const std::string example = example_of_conflict(grammar_, t, follower, beside);
    throw GrammarError("terminal " + name(follower) + " may follow terminal " + name(t) +
                       ", but every byte it can begin with may also continue what is being read there: the longest match "
                       "could swallow it. " + (example.empty() ? "" : example + ". ") + "Separate them, or let " + name(t) +
                       " exclude what " + name(follower) + " begins with");
  }

  const std::string& name(uint32_t t) const { return grammar_.terminal_names[t]; }

  Grammar& grammar_;
  size_t count_;
  ProofWork work_;
  RulePlaces places_;
  TerminalGroups groups_;
  std::optional<JointAutomaton> joint_;  // of the coarse expressions; if there is none, terminals are compared two by two
  std::vector<ExprId> coarse_;  // by terminal
  std::vector<std::vector<uint32_t>> partners_;  // by terminal: others that may match a text of it
  std::vector<std::optional<std::vector<Reading>>> readings_;        // by place, once known
  std::vector<std::optional<std::vector<const Edge*>>> followers_;  // likewise
  FlatMap<uint64_t, uint8_t> overlaps_;  // by pair of terminals
  FlatMap<uint64_t, uint32_t> taken_ids_;
  std::vector<ByteSet> taken_;
  std::vector<ByteSet> taken_beside_;             // by terminal, where terminals are followed all together
  bool alphabets_known_ = false;
  std::array<std::vector<std::pair<uint32_t, ByteSet>>, 256> alphabets_;  // by first byte: those of groups
  FlatMap<uint64_t, uint32_t> alphabet_ids_;  // by group and first byte
  std::deque<ByteSet> alphabets_beside_;
  std::vector<std::optional<ByteSet>> begins_, ends_, foreign_;  // by terminal, once known
};

}  // namespace

void prove_lexing(Grammar& grammar) { Proof(grammar).run(); }

}  // namespace constrain
