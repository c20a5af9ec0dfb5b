// Builds suffix automata, chunk by chunk, in time linear in the texts.
#include "expressions/suffix_automaton.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "expressions/json_spelling.h"

namespace constrain {

namespace {

constexpr uint32_t none = 0xFFFFFFFFu;

Hash hash_of(Hash hash, std::string_view text) {
  hash = mix(hash, text.size());
  for (; text.size() >= 8; text.remove_prefix(8)) {
    uint64_t word;
    std::memcpy(&word, text.data(), sizeof word);
    hash = mix(hash, word);
  }
  uint64_t rest = 0;
  for (char c : text) rest = (rest << 8) | static_cast<uint8_t>(c);
  return mix(hash, rest);
}

size_t bytes_of_character(char lead) {
  const auto byte = static_cast<uint8_t>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

// The automaton while it grows. Most states have one transition, which is kept with the state; the others are in lists.
class Growing {
 public:
  explicit Growing(size_t chunks) {
    states_.reserve(chunks + chunks / 2 + 2);
    make(0, none);
  }

  struct State {
    uint32_t label = none, target = none;  // the first transition
    uint32_t more = none;                  // the list of further ones
    uint32_t length = 0, link = none;
  };
  struct Transition {
    uint32_t label, target, next;
  };

  // Appends a chunk to all runs that end at the end of the text so far.
  void append(uint32_t label) {
    const uint32_t made = make(states_[last_].length + 1, 0);
    uint32_t at = last_;
    last_ = made;
    uint32_t* known = nullptr;
    while (at != none && (known = find(at, label)) == nullptr) {
      add(at, label, made);
      at = states_[at].link;
    }
    if (at == none) return;
    const uint32_t there = *known;
    if (states_[there].length == states_[at].length + 1) {
      states_[made].link = there;
      return;
    }
    const uint32_t split = make(states_[at].length + 1, states_[there].link);  // the runs of `there` that end here, too
    copy(there, split);
    states_[there].link = states_[made].link = split;
    for (; at != none && (known = find(at, label)) != nullptr && *known == there; at = states_[at].link) *known = split;
  }

  const std::vector<State>& states() const { return states_; }

  template <typename F>
  void each(uint32_t state, F&& f) const {
    const State& from = states_[state];
    if (from.label != none) f(from.label, from.target);
    for (uint32_t i = from.more; i != none; i = transitions_[i].next) f(transitions_[i].label, transitions_[i].target);
  }

 private:
  uint32_t make(uint32_t length, uint32_t link) {
    states_.push_back({.length = length, .link = link});
    return static_cast<uint32_t>(states_.size() - 1);
  }

  static uint64_t key(uint32_t state, uint32_t label) { return (uint64_t{state} << 32) | label; }

  uint32_t* find(uint32_t state, uint32_t label) {  // valid until a transition is added
    State& from = states_[state];
    if (from.label == label) return &from.target;
    if (from.more == none) return nullptr;
    const uint32_t* found = numbers_.find(key(state, label));
    return found ? &transitions_[*found].target : nullptr;
  }

  void add(uint32_t state, uint32_t label, uint32_t target) {
    State& from = states_[state];
    if (from.label == none) {
      from.label = label;
      from.target = target;
      return;
    }
    const auto number = static_cast<uint32_t>(transitions_.size());
    transitions_.push_back({label, target, from.more});
    from.more = number;
    numbers_.insert(key(state, label), number);
  }

  void copy(uint32_t from, uint32_t to) {
    if (states_[from].label != none) add(to, states_[from].label, states_[from].target);
    for (uint32_t i = states_[from].more; i != none; i = transitions_[i].next) add(to, transitions_[i].label, transitions_[i].target);
  }

  std::vector<State> states_;
  std::vector<Transition> transitions_;
  FlatMap<uint64_t, uint32_t> numbers_;  // of the transitions in lists, by state and label
  uint32_t last_ = 0;
};

}  // namespace

Hash SuffixAutomaton::Source::hash() const {
  Hash hash = mix(mix(seeded(0x737566666978), json), texts.size());
  for (const std::string& text : texts) hash = hash_of(hash, text);
  for (const std::string& cut : cuts) hash = hash_of(hash, cut);
  return hash;
}

SuffixAutomaton::SuffixAutomaton(const Source& source) : hash_(source.hash()) { build(read(source)); }

// The chunks of all texts by number, in the order of their bytes; after each text a number that no chunk has.
std::vector<uint32_t> SuffixAutomaton::read(const Source& source) {
  std::vector<uint32_t> chunks;
  FlatMap<Hash, uint32_t> numbers;
  std::array<uint32_t, 128> ascii;  // chunks of one such character, which are most
  ascii.fill(none);
  std::vector<std::string> spelled;
  std::vector<uint32_t> lengths;
  auto number_of = [&](std::string_view chunk, uint32_t characters) {
    const bool is_ascii = chunk.size() == 1;
    const auto byte = static_cast<uint8_t>(chunk[0]);
    if (is_ascii && ascii[byte] != none) return ascii[byte];
    const Hash key = hash_of(seeded(0x6368756E6B), chunk);
    if (const uint32_t* known = is_ascii ? nullptr : numbers.find(key)) return *known;
    const auto number = static_cast<uint32_t>(spelled.size());
    if (is_ascii) {
      ascii[byte] = number;
    } else {
      numbers.insert(key, number);
    }
    std::string written;
    for (char c : chunk) {
      if (source.json) {
        spell_json(written, c);
      } else {
        written.push_back(c);
      }
    }
    spelled.push_back(std::move(written));
    lengths.push_back(characters);
    return number;
  };
  for (size_t i = 0; i < source.texts.size(); ++i) {
    const std::string_view text = source.texts[i];
    uint64_t length = 0;
    for (size_t at = 0, character = 0; at < text.size();) {
      const size_t begin = at;
      uint32_t characters = 0;
      do {
        at += bytes_of_character(text[at]);
        ++character;
        ++characters;
      } while (at < text.size() && !source.cuts.empty() && source.cuts[i][character] == 0);
      const uint32_t number = number_of(text.substr(begin, at - begin), characters);
      chunks.push_back(number);
      length += spelled[number].size();
    }
    longest_text_ = std::max(longest_text_, length);
    chunks.push_back(none);
  }
  std::vector<uint32_t> order(spelled.size()), ranks(spelled.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return spelled[a] < spelled[b]; });
  offsets_.push_back(0);
  for (uint32_t rank = 0; rank < order.size(); ++rank) {
    const std::string& chunk = spelled[order[rank]];
    ranks[order[rank]] = rank;
    bytes_.append(chunk);
    offsets_.push_back(static_cast<uint32_t>(bytes_.size()));
    characters_.push_back(lengths[order[rank]]);
    most_characters_ = std::max(most_characters_, characters_.back());
    longest_chunk_ = std::max<uint64_t>(longest_chunk_, chunk.size());
    for (char c : chunk) alphabet_.add(static_cast<uint8_t>(c));
  }
  const auto between = static_cast<uint32_t>(order.size());
  for (uint32_t& chunk : chunks) chunk = chunk == none ? between : ranks[chunk];
  return chunks;
}

void SuffixAutomaton::build(std::span<const uint32_t> chunks) {
  Growing growing(chunks.size());
  for (uint32_t chunk : chunks) growing.append(chunk);
  const std::vector<Growing::State>& states = growing.states();
  const auto between = static_cast<uint32_t>(characters_.size());
  std::vector<std::pair<uint32_t, uint32_t>> out;
  begins_.reserve(states.size() + 1);
  for (uint32_t state = 0; state < states.size(); ++state) {
    begins_.push_back(static_cast<uint32_t>(labels_.size()));
    out.clear();
    growing.each(state, [&](uint32_t label, uint32_t target) {
      if (label != between) out.emplace_back(label, target);
    });
    if (out.size() > 1) std::sort(out.begin(), out.end());
    for (const auto& [label, target] : out) {
      labels_.push_back(label);
      targets_.push_back(target);
    }
  }
  begins_.push_back(static_cast<uint32_t>(labels_.size()));
  // A transition leads to longer runs, so the states with the longest runs come first.
  std::vector<uint32_t> ends(chunks.size() + 2);
  for (const Growing::State& state : states) ++ends[state.length];
  for (size_t length = ends.size() - 1; length-- > 0;) ends[length] += ends[length + 1];
  std::vector<uint32_t> order(states.size());
  for (uint32_t state = 0; state < states.size(); ++state) order[--ends[states[state].length]] = state;
  longest_.assign(states.size(), 0);
  for (uint32_t state : order) {
    for (uint32_t i = begin(state); i < end(state); ++i) longest_[state] = std::max(longest_[state], characters(i) + longest_[targets_[i]]);
  }
}

}  // namespace constrain
