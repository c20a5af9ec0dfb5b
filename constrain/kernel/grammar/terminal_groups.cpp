// The joint automaton of all terminals, and their groups.
#include "grammar/terminal_groups.h"

#include <algorithm>
#include <array>
#include <utility>

namespace constrain {

bool JointAutomaton::follow(ExpressionStore& store, const std::vector<ExprId>& terminals, ProofWork& work) {
  std::vector<Entry> all;
  for (uint32_t t = 0; t < terminals.size(); ++t) {
    if (terminals[t] != ExprId::nothing) all.push_back({t, terminals[t]});
  }
  add(all);
  const size_t derivatives = store.steps();
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
    if (steps_ > max_joint_steps || store.steps() > derivatives + max_overlap_work) return false;
  }
  return true;
}

void JointAutomaton::add(const std::vector<Entry>& set) {
  Hash hash = seeded(set.size());
  for (const Entry& entry : set) hash = mix(hash, paired(entry.terminal, entry.rest));
  if (known_.find(hash)) return;
  known_.insert(hash, 1);
  entries_.insert(entries_.end(), set.begin(), set.end());
  begins_.push_back(entries_.size());
}

void TerminalGroups::find(const Grammar& grammar, const RulePlaces& places) {
  std::vector<Hash> readable(of_.size(), seeded(0));
  for (uint32_t place = 0; place < places.count(); ++place) {
    for (uint32_t edge : places.edges(place)) {
      Hash& hash = readable[grammar.edges[edge].symbol];
      hash = mix(hash, place + 1);  // a repeated place does no harm: all terminals with this hash have it
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

void TerminalGroups::merge() {
  std::fill(of_.begin(), of_.end(), 0u);
  count_ = words_ = 1;
  together_.assign(1, 1);
}

void TerminalGroups::allocate(ProofWork& work) {
  work.spend(count_ * words_);
  together_.assign(count_ * words_, 0);
}

size_t TerminalGroups::meet_all(const std::vector<uint32_t>& ones, const std::vector<uint32_t>& twos) {
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
      for (size_t i = 0; i < words_; ++i) together_[each * words_ + i] |= row[i];
    }
  }
  return words;
}

}  // namespace constrain
