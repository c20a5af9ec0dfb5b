// Proof that longest-match lexing strands nothing.
//
// Shown, for every place a terminal T may stand at and every terminal V that may follow: V (or an ignored terminal, and V
// after that) can begin with a byte that nothing read beside T can take once T is matched. Then every way through the
// rules has a text that is lexed that way, and a live state can be completed. The test is sufficient, not necessary:
// callers are not told apart, and what may be read beside T is taken pair by pair. It is made without long counts first,
// with which expressions have many derivatives; these, and the bytes that may follow one by one, are looked at where it
// fails.
//
// Thousands of terminals may stand at one place, and pairs of them would be millions. So states of rules that read the
// same are one *place*, terminals that are readable at the same places are one *group*, and all terminals are followed
// side by side through one automaton (Joint): every pair of them that begins alike is met there, and no other.
#include <algorithm>
#include <array>
#include <deque>
#include <optional>

#include "errors.h"
#include "grammar.h"

namespace constrain {

namespace {

constexpr size_t max_pair_states = 5'000;        // of two terminals read side by side
constexpr size_t max_paired_terminals = 100;     // up to these, each two are compared; more are followed all together
constexpr size_t max_joint_steps = 2'000'000;    // of terminals that are followed all together; beyond, each two are compared
constexpr size_t max_edge_pairs = 10'000'000;    // that are followed side by side; beyond, any two terminals may meet
constexpr size_t max_overlaps = 4'000'000;       // pairs of terminals that may match one text; likewise
constexpr size_t max_overlap_work = 300'000;     // derivatives that these may take; likewise
constexpr size_t max_proof_work = 20'000'000;    // steps of the whole proof, about 50 ns each; beyond, LimitError
constexpr size_t pair_state_work = 40;           // steps that a state of two terminals read side by side counts for

// Work that the proof has taken.
class Work {
 public:
  void spend(size_t steps) {
    spent_ += steps;
    if (spent_ <= max_proof_work) return;
    throw LimitError("too many terminals may be read at the same places to prove that the longest match swallows none "
                     "(MAX_PROOF_WORK = " + std::to_string(max_proof_work) + " steps); write alternatives as one terminal");
  }

 private:
  size_t spent_ = 0;
};

// What states of rules read next. Callers are not told apart, so a state that ends a rule reads what follows any call.
// States that read the same in the end are one place.
class Places {
 public:
  Places(const Grammar& grammar, Work& work) : grammar_(grammar), work_(work), returns_(grammar.states.size()) {
    callers_.resize(grammar.rules.size());
    for (uint32_t q = 0; q < returns_; ++q) {
      for (const Edge& edge : grammar.edges_of(StateId{q})) {
        if (edge.kind == EdgeKind::rule) callers_[edge.symbol].push_back(index(edge.target));
      }
    }
    place_.assign(returns_ + grammar.rules.size(), unknown);
    listed_.assign(grammar.edges.size(), 0);
    find_components();
  }

  size_t count() const { return edges_.size(); }
  uint32_t of(StateId q) const { return place_[index(q)]; }
  // Indices of the edges with a terminal, in ascending order.
  const std::vector<uint32_t>& edges(uint32_t place) const { return edges_[place]; }

 private:
  static constexpr uint32_t unknown = ~uint32_t{0};

  // Calls `f` with what a node reads on from without reading a terminal. Nodes are states, and the end of each rule.
  template <typename F>
  void each_next(uint32_t node, F&& f) const {
    if (node >= returns_) {
      for (uint32_t caller : callers_[node - returns_]) f(caller);
      return;
    }
    const State& state = grammar_.states[node];
    for (const Edge& edge : grammar_.edges_of(StateId{node})) {
      if (edge.kind == EdgeKind::epsilon) f(index(edge.target));
      if (edge.kind != EdgeKind::rule) continue;
      f(index(grammar_.rules[edge.symbol].start));
      if (grammar_.rules[edge.symbol].nullable) f(index(edge.target));
    }
    if (state.accepting) f(static_cast<uint32_t>(returns_) + state.rule);
  }

  // Strongly connected components (Tarjan 1972), those that others lead to first.
  void find_components() {
    struct Visit {
      uint32_t node;
      std::vector<uint32_t> next;
      size_t at = 0;
    };
    std::vector<uint32_t> number(place_.size(), unknown), low(place_.size(), 0), open;
    std::vector<Visit> visits;
    uint32_t count = 0;
    auto enter = [&](uint32_t node) {
      number[node] = low[node] = count++;
      open.push_back(node);
      visits.push_back({node, {}});
      each_next(node, [&](uint32_t next) { visits.back().next.push_back(next); });
    };
    for (uint32_t root = 0; root < place_.size(); ++root) {
      if (number[root] != unknown) continue;
      enter(root);
      while (!visits.empty()) {
        Visit& visit = visits.back();
        const uint32_t node = visit.node;
        if (visit.at < visit.next.size()) {
          const uint32_t next = visit.next[visit.at++];
          if (number[next] == unknown) {
            enter(next);
          } else if (place_[next] == unknown) {
            low[node] = std::min(low[node], number[next]);
          }
          continue;
        }
        visits.pop_back();
        if (!visits.empty()) low[visits.back().node] = std::min(low[visits.back().node], low[node]);
        if (low[node] != number[node]) continue;
        size_t begin = open.size();
        while (open[--begin] != node) {
        }
        make_place({open.begin() + static_cast<std::ptrdiff_t>(begin), open.end()});
        open.resize(begin);
      }
    }
  }

  // The place of a component: another one's, if it reads nothing but what that reads.
  void make_place(const std::vector<uint32_t>& nodes) {
    std::vector<uint32_t> own, others;
    for (uint32_t node : nodes) {
      each_next(node, [&](uint32_t next) {
        if (place_[next] != unknown) others.push_back(place_[next]);  // else it is one of the nodes
      });
      if (node >= returns_) continue;
      const State& state = grammar_.states[node];
      for (uint32_t i = state.edges_begin; i < state.edges_begin + state.edges_count; ++i) {
        if (grammar_.edges[i].kind == EdgeKind::terminal) own.push_back(i);
      }
    }
    std::sort(others.begin(), others.end());
    others.erase(std::unique(others.begin(), others.end()), others.end());
    auto place = static_cast<uint32_t>(edges_.size());
    if (own.empty() && others.size() == 1) {
      place = others[0];
    } else {
      ++list_;
      for (uint32_t edge : own) listed_[edge] = list_;
      for (uint32_t other : others) {
        work_.spend(edges_[other].size());
        for (uint32_t edge : edges_[other]) {
          if (listed_[edge] == list_) continue;
          listed_[edge] = list_;
          own.push_back(edge);
        }
      }
      work_.spend(own.size());
      std::sort(own.begin(), own.end());
      edges_.push_back(std::move(own));
    }
    for (uint32_t node : nodes) place_[node] = place;
  }

  const Grammar& grammar_;
  Work& work_;
  size_t returns_;  // nodes from here on are the ends of rules
  std::vector<std::vector<uint32_t>> callers_;  // by rule: states after an edge that reads it
  std::vector<uint32_t> place_;                 // by node
  std::vector<std::vector<uint32_t>> edges_;    // by place
  std::vector<uint32_t> listed_;                // by edge: the last list that it was added to
  uint32_t list_ = 0;
};

// All terminals, followed side by side from their beginnings while at least two are left.
//
//     {if, int, name} --i--> {f, nt, name*} --f--> {(end), name*}
class Joint {
 public:
  struct Entry {
    uint32_t terminal;
    ExprId rest;
  };

  // Whether they could be followed within the limits.
  bool follow(ExpressionStore& store, const std::vector<ExprId>& terminals, Work& work) {
    std::vector<Entry> all;
    for (uint32_t t = 0; t < terminals.size(); ++t) {
      if (terminals[t] != ExprId::nothing) all.push_back({t, terminals[t]});
    }
    add(all);
    const size_t derivatives = store.work();
    std::vector<std::vector<Entry>> next(256);
    std::vector<ExprId> rests;
    for (size_t i = 0; i < states(); ++i) {
      const size_t steps_before = steps_;
      rests.clear();
      for (const Entry& entry : entries(i)) rests.push_back(entry.rest);
      const std::vector<uint8_t> representatives = store.representatives(rests);
      std::array<bool, 256> represented{};
      for (uint8_t byte : representatives) represented[byte] = true;
      for (size_t j = begins_[i]; j < begins_[i + 1]; ++j) {
        const Entry entry = entries_[j];
        auto step = [&](uint8_t byte) {
          ++steps_;
          const ExprId rest = store.derivative(entry.rest, byte);
          if (rest != ExprId::nothing) next[byte].push_back({entry.terminal, rest});
        };
        const int lead = store[entry.rest].lead;
        ++steps_;
        if (lead >= 0 && represented[static_cast<size_t>(lead)]) {
          step(static_cast<uint8_t>(lead));
          continue;
        }
        const ByteSet first = store.first(entry.rest);
        for (uint8_t byte : representatives) {
          if (first.contains(byte)) step(byte);
        }
      }
      for (uint8_t byte : representatives) {
        if (next[byte].size() > 1) add(next[byte]);
        next[byte].clear();
      }
      work.spend(steps_ - steps_before);
      if (steps_ > max_joint_steps || store.work() > derivatives + max_overlap_work) return false;
    }
    return true;
  }

  size_t states() const { return begins_.size() - 1; }
  std::span<const Entry> entries(size_t state) const {
    return {entries_.data() + begins_[state], begins_[state + 1] - begins_[state]};
  }

 private:
  void add(const std::vector<Entry>& set) {
    Hash hash = seeded(set.size());
    for (const Entry& entry : set) hash = mix(hash, (uint64_t{entry.terminal} << 32) | index(entry.rest));
    if (known_.find(hash)) return;
    known_.insert(hash, 1);
    entries_.insert(entries_.end(), set.begin(), set.end());
    begins_.push_back(entries_.size());
  }

  std::vector<Entry> entries_;      // of all states, one after the other
  std::vector<size_t> begins_{0};   // by state
  FlatMap<Hash, uint8_t> known_;
  size_t steps_ = 0;
};

// Which terminals may be usable at once. Those that are readable at the same places are one group.
class Groups {
 public:
  explicit Groups(const Grammar& grammar) : of_(grammar.terminals.size(), 0) {}

  void find(const Grammar& grammar, const Places& places) {
    std::vector<Hash> readable(of_.size(), seeded(0));
    for (uint32_t place = 0; place < places.count(); ++place) {
      for (uint32_t edge : places.edges(place)) {
        Hash& hash = readable[grammar.edges[edge].symbol];
        hash = mix(hash, place + 1);  // the same place twice is no matter: so it is for all that have this hash
      }
    }
    for (uint32_t t : grammar.ignored) readable[t] = mix(readable[t], t | (uint64_t{1} << 32));
    FlatMap<Hash, uint32_t> known;
    for (uint32_t t = 0; t < of_.size(); ++t) {
      const uint32_t* found = known.find(readable[t]);
      if (!found) known.insert(readable[t], static_cast<uint32_t>(count_++));
      of_[t] = *known.find(readable[t]);
    }
    words_ = (count_ + 63) / 64;
  }

  // All may be beside all.
  void merge() {
    std::fill(of_.begin(), of_.end(), 0u);
    count_ = words_ = 1;
    beside_.assign(1, 1);
  }

  void allocate(Work& work) {
    work.spend(count_ * words_);
    beside_.assign(count_ * words_, 0);
  }

  void meet(uint32_t one, uint32_t two) {
    beside_[one * words_ + two / 64] |= uint64_t{1} << (two % 64);
    beside_[two * words_ + one / 64] |= uint64_t{1} << (one % 64);
  }

  // Returns how many steps that took.
  size_t meet_all(const std::vector<uint32_t>& ones, const std::vector<uint32_t>& twos) {
    const size_t pairs = ones.size() * twos.size(), words = (ones.size() + twos.size()) * (words_ + 1);
    if (pairs <= words) {
      for (uint32_t one : ones) {
        for (uint32_t two : twos) meet(one, two);
      }
      return pairs;
    }
    std::vector<uint64_t> row(words_);
    for (const auto& [some, others] : {std::pair(&ones, &twos), std::pair(&twos, &ones)}) {
      std::fill(row.begin(), row.end(), 0);
      for (uint32_t other : *others) row[other / 64] |= uint64_t{1} << (other % 64);
      for (uint32_t each : *some) {
        for (size_t i = 0; i < words_; ++i) beside_[each * words_ + i] |= row[i];
      }
    }
    return words;
  }

  size_t count() const { return count_; }
  uint32_t of(uint32_t terminal) const { return of_[terminal]; }
  bool may_meet(uint32_t one, uint32_t two) const { return (beside_[one * words_ + two / 64] >> (two % 64)) & 1; }
  bool beside(uint32_t t, uint32_t u) const { return may_meet(of_[t], of_[u]); }

 private:
  std::vector<uint32_t> of_;  // by terminal
  size_t count_ = 0, words_ = 0;
  std::vector<uint64_t> beside_;  // a row of bits for each group
};

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
      const uint64_t key = (uint64_t{edge.symbol} << 32) | place;
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
        for (const Joint::Entry& entry : joint_->entries(i)) {
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
    seen.insert((uint64_t{start} << 32) | start, 1);
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
          const uint64_t pair = (uint64_t{x} << 32) | y;
          if (seen.find(pair) || !overlap(one.terminal, two.terminal)) return;
          seen.insert(pair, 1);
          pending.emplace_back(x, y);
        });
        followed += std::min(partners_[one.terminal].size(), reading(b).size());
        if (followed > max_edge_pairs || grammar_.expressions.work() > work_before + max_overlap_work) return false;
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
    const uint64_t key = (uint64_t{std::min(t, u)} << 32) | std::max(t, u);
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
      if (work.size() > max_pair_states) {
        throw LimitError("terminals " + name(t) + " and " + name(u) + " are too complex to be told apart (MAX_PAIR_STATES = " +
                         std::to_string(max_pair_states) + ")");
      }
      work_.spend(pair_state_work);
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
      for (const Joint::Entry& entry : joint_->entries(i)) {
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
    const std::string example = example_of_swallowing(grammar_, t, follower, beside);
    throw GrammarError("terminal " + name(follower) + " may follow terminal " + name(t) +
                       ", but every byte it can begin with may also continue what is being read there: the longest match "
                       "could swallow it. " + (example.empty() ? "" : example + ". ") + "Separate them, or let " + name(t) +
                       " exclude what " + name(follower) + " begins with");
  }

  const std::string& name(uint32_t t) const { return grammar_.terminal_names[t]; }

  Grammar& grammar_;
  size_t count_;
  Work work_;
  Places places_;
  Groups groups_;
  std::optional<Joint> joint_;  // of the coarse expressions; if there is none, terminals are compared two by two
  std::vector<ExprId> coarse_;  // by terminal
  std::vector<std::vector<uint32_t>> partners_;  // by terminal: others that may match a text of it
  std::vector<std::optional<std::vector<Reading>>> readings_;        // by place, once known
  std::vector<std::optional<std::vector<const Edge*>>> followers_;  // likewise
  FlatMap<uint64_t, uint8_t> overlaps_;  // by pair of terminals
  FlatMap<uint64_t, uint32_t> taken_ids_;
  std::vector<ByteSet> taken_;
  std::vector<ByteSet> taken_beside_;             // by terminal, where there is a Joint
  bool alphabets_known_ = false;
  std::array<std::vector<std::pair<uint32_t, ByteSet>>, 256> alphabets_;  // by first byte: those of groups
  FlatMap<uint64_t, uint32_t> alphabet_ids_;  // by group and first byte
  std::deque<ByteSet> alphabets_beside_;
  std::vector<std::optional<ByteSet>> begins_, ends_, foreign_;  // by terminal, once known
};

}  // namespace

void prove_lexing(Grammar& grammar) { Proof(grammar).run(); }

}  // namespace constrain
