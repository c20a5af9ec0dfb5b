// Proof that longest-match lexing strands nothing.
//
// Shown, for every place a terminal T may stand at and every terminal V that may follow: V (or an ignored terminal, and V
// after that) can begin with a byte that nothing read beside T can take once T is matched. Then every way through the
// rules has a text that is lexed that way, and a live state can be completed. The test is sufficient, not necessary:
// callers are not told apart, and what may be read beside T is taken pair by pair. It is made without long counts first,
// with which expressions have many derivatives; these, and the bytes that may follow one by one, are looked at where it
// fails.
#include <algorithm>
#include <optional>

#include "errors.h"
#include "grammar.h"

namespace constrain {

namespace {

constexpr size_t max_pair_states = 5'000;      // of two terminals read side by side
constexpr size_t max_edge_pairs = 10'000'000;  // that are followed side by side; beyond, any two terminals may meet
constexpr size_t max_overlap_work = 300'000;   // derivatives that these may take; likewise

using StateSet = std::vector<bool>;

class Proof {
 public:
  explicit Proof(Grammar& grammar) : grammar_(grammar), count_(grammar.terminals.size()), ends_(count_), foreign_(count_) {
    callers_.resize(grammar.rules.size());
    for (uint32_t q = 0; q < grammar.states.size(); ++q) {
      for (const Edge& edge : grammar.edges_of(StateId{q})) {
        if (edge.kind == EdgeKind::rule) callers_[edge.symbol].push_back(index(edge.target));
      }
    }
    for (uint32_t q = 0; q < grammar.states.size(); ++q) reached_.push_back(reach(q));
    for (ExprId terminal : grammar.terminals) coarse_.push_back(coarse(terminal));
    beside_.assign(count_, std::vector<bool>(count_, false));
    find_beside();
  }

  void run() {
    for (uint32_t ignored : grammar_.ignored) check_ignored(ignored);
    std::vector<std::vector<bool>> done(count_, std::vector<bool>(count_, false));
    for (uint32_t q = 0; q < grammar_.states.size(); ++q) {
      for (const Edge& edge : grammar_.edges_of(StateId{q})) {
        if (edge.kind != EdgeKind::terminal) continue;
        for (uint32_t r : reached_[index(edge.target)]) {
          for (const Edge& follower : grammar_.edges_of(StateId{r})) {
            if (follower.kind != EdgeKind::terminal || done[edge.symbol][follower.symbol]) continue;
            check(edge.symbol, follower.symbol, follower.excluding >= 0);
            if (follower.excluding < 0) done[edge.symbol][follower.symbol] = true;
          }
        }
      }
    }
  }

 private:
  // States reached from `q` without reading, callers not told apart.
  std::vector<uint32_t> reach(uint32_t q) const {
    std::vector<uint32_t> work{q};
    StateSet seen(grammar_.states.size());
    seen[q] = true;
    auto add = [&](uint32_t next) {
      if (!seen[next]) {
        seen[next] = true;
        work.push_back(next);
      }
    };
    for (size_t i = 0; i < work.size(); ++i) {
      const State& state = grammar_.states[work[i]];
      for (const Edge& edge : grammar_.edges_of(StateId{work[i]})) {
        if (edge.kind == EdgeKind::epsilon) add(index(edge.target));
        if (edge.kind != EdgeKind::rule) continue;
        add(index(grammar_.rules[edge.symbol].start));
        if (grammar_.rules[edge.symbol].nullable) add(index(edge.target));
      }
      if (state.accepting) {
        for (uint32_t caller : callers_[state.rule]) add(caller);
      }
    }
    return work;
  }

  // Which terminals may be usable at once.
  void find_beside() {
    for (uint32_t t : grammar_.ignored) {
      for (uint32_t u = 0; u < count_; ++u) beside_[t][u] = beside_[u][t] = true;
    }
    if (!follow_pairs()) {
      for (auto& row : beside_) row.assign(count_, true);
    }
  }

  // From the start, two ways through the rules that read the same lexemes; false if these are too many to follow.
  bool follow_pairs() {
    const size_t n = grammar_.states.size();
    std::vector<std::vector<const Edge*>> reading(n);  // by state: edges that may be next, one to each target
    for (uint32_t q = 0; q < n; ++q) {
      FlatMap<uint64_t, uint8_t> known;
      for (uint32_t r : reached_[q]) {
        for (const Edge& edge : grammar_.edges_of(StateId{r})) {
          const uint64_t key = (uint64_t{edge.symbol} << 32) | index(edge.target);
          if (edge.kind != EdgeKind::terminal || known.find(key)) continue;
          known.insert(key, 1);
          reading[q].push_back(&edge);
        }
      }
    }
    const uint32_t start = index(grammar_.rules[0].start);
    FlatMap<uint64_t, uint8_t> seen;
    std::vector<std::pair<uint32_t, uint32_t>> work{{start, start}};
    size_t followed = 0;
    const size_t work_before = grammar_.expressions.work();
    while (!work.empty()) {
      auto [a, b] = work.back();
      work.pop_back();
      followed += reading[a].size() * reading[b].size();
      if (followed > max_edge_pairs || grammar_.expressions.work() > work_before + max_overlap_work) return false;
      for (const Edge* one : reading[a]) {
        for (const Edge* two : reading[b]) {
          beside_[one->symbol][two->symbol] = beside_[two->symbol][one->symbol] = true;
          const auto [x, y] = std::minmax({index(one->target), index(two->target)});
          const uint64_t pair = (uint64_t{x} << 32) | y;
          if (seen.find(pair) || !overlap(one->symbol, two->symbol)) continue;
          seen.insert(pair, 1);
          work.emplace_back(x, y);
        }
      }
    }
    return true;
  }

  // May one text match both?
  bool overlap(uint32_t t, uint32_t u) {
    if (t == u) return true;
    const uint64_t key = (uint64_t{std::min(t, u)} << 32) | std::max(t, u);
    if (const uint8_t* found = overlaps_.find(key)) return *found;
    ExpressionStore& store = grammar_.expressions;
    bool result = store.first(grammar_.terminals[t]).intersects(store.first(grammar_.terminals[u]));
    try {
      result = result && store.intersection({coarse_[t], coarse_[u]}) != ExprId::nothing &&
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
      if (work.size() > max_pair_states) {
        throw LimitError("terminals " + name(t) + " and " + name(u) + " are too complex to be told apart (MAX_PAIR_STATES = " +
                         std::to_string(max_pair_states) + ")");
      }
      auto [a, b] = work[i];
      if (store.nullable(a)) f(b);
      ByteSet possible = store.first(a) & store.first(b);
      for (uint8_t byte : store.representatives({a, b})) {
        if (!possible.contains(byte)) continue;
        ExprId next_a = store.derivative(a, byte), next_b = store.derivative(b, byte);
        uint64_t pair = (uint64_t{index(next_a)} << 32) | index(next_b);
        if (next_a == ExprId::nothing || next_b == ExprId::nothing || seen.find(pair)) continue;
        seen.insert(pair, 1);
        work.emplace_back(next_a, next_b);
      }
    }
  }

  // Bytes that `u` may take when `t`, begun with it, is matched; maybe a few too many.
  ByteSet taken(uint32_t t, uint32_t u) {
    uint64_t key = (uint64_t{t} << 32) | u;
    if (const uint32_t* found = taken_ids_.find(key)) return taken_[*found];
    ByteSet result;
    each_rest(coarse_, t, u, [&](ExprId rest) { result = result | grammar_.expressions.first(rest); });
    taken_ids_.insert(key, static_cast<uint32_t>(taken_.size()));
    taken_.push_back(result);
    return result;
  }

  // Bytes that end terminal `t`, whatever is read beside it.
  ByteSet ends(uint32_t t) {
    if (ends_[t]) return *ends_[t];
    ByteSet result;
    ByteSet no = taken(t, t);
    for (uint32_t u = 0; u < count_; ++u) {
      if (beside_[t][u]) no = no | taken(t, u);
    }
    for (unsigned b = 0; b < 256; ++b) {
      if (!no.contains(static_cast<uint8_t>(b))) result.add(static_cast<uint8_t>(b));
    }
    ends_[t] = result;
    return result;
  }

  // Bytes with which `t` may begin; of a terminal some texts of which are excluded, those with endless continuations.
  ByteSet begins(uint32_t t, bool excluding) {
    ByteSet result;
    ExpressionStore& store = grammar_.expressions;
    store.first(grammar_.terminals[t]).each([&](uint8_t byte) {
      ExprId rest = store.derivative(grammar_.terminals[t], byte);
      if (rest != ExprId::nothing && (!excluding || store.infinite(rest))) result.add(byte);
    });
    return result;
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
      if ((u == t || beside_[t][u]) && left.intersects(taken(t, u))) each_rest(grammar_.terminals, t, u, take);
    }
    return left;
  }

  // Some of the bytes that end terminal `t`: those that nothing read beside it takes anywhere.
  const ByteSet& foreign(uint32_t t) {
    if (!foreign_[t]) {
      ExpressionStore& store = grammar_.expressions;
      ByteSet taken = store.alphabet(grammar_.terminals[t]);
      for (uint32_t u = 0; u < count_; ++u) {
        const bool together = beside_[t][u] && store.first(grammar_.terminals[t]).intersects(store.first(grammar_.terminals[u]));
        if (together) taken = taken | store.alphabet(grammar_.terminals[u]);
      }
      ByteSet others;
      for (unsigned b = 0; b < 256; ++b) {
        if (!taken.contains(static_cast<uint8_t>(b))) others.add(static_cast<uint8_t>(b));
      }
      foreign_[t] = others;
    }
    return *foreign_[t];
  }

  bool separates(uint32_t t, uint32_t follower, bool excluding, bool exact = false) {
    if (foreign(t).intersects(begins(follower, excluding))) return true;
    ByteSet all = begins(follower, false);
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
    for (uint32_t q = 0; q < grammar_.states.size(); ++q) {
      for (const Edge& edge : grammar_.edges_of(StateId{q})) {
        if (edge.kind != EdgeKind::terminal || separates(ignored, edge.symbol, edge.excluding >= 0)) continue;
        if (!separates(ignored, edge.symbol, edge.excluding >= 0, true)) refuse(ignored, edge.symbol);
      }
    }
  }

  [[noreturn]] void refuse(uint32_t t, uint32_t follower) {
    std::vector<uint32_t> beside{t};
    for (uint32_t u = 0; u < count_; ++u) {
      if (u != t && beside_[t][u]) beside.push_back(u);
    }
    const std::string example = example_of_swallowing(grammar_, t, follower, beside);
    throw GrammarError("terminal " + name(follower) + " may follow terminal " + name(t) +
                       ", but every byte it can begin with may also continue what is being read there: the longest match "
                       "could swallow it. " + (example.empty() ? "" : example + ". ") + "Separate them, or let " + name(t) +
                       " exclude what " + name(follower) + " begins with");
  }

  const std::string& name(uint32_t t) const { return grammar_.terminal_names[t]; }

  Grammar& grammar_;
  size_t count_;
  std::vector<std::vector<uint32_t>> callers_;  // by rule: states after an edge that reads it
  std::vector<std::vector<uint32_t>> reached_;
  std::vector<ExprId> coarse_;  // by terminal
  std::vector<std::vector<bool>> beside_;
  FlatMap<uint64_t, uint8_t> overlaps_;  // by pair of terminals
  FlatMap<uint64_t, uint32_t> taken_ids_;
  std::vector<ByteSet> taken_;
  std::vector<std::optional<ByteSet>> ends_, foreign_;  // by terminal, once known
};

}  // namespace

void prove_lexing(Grammar& grammar) { Proof(grammar).run(); }

}  // namespace constrain
