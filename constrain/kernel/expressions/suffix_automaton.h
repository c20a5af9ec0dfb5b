// The suffix automaton of some texts (Blumer et al. 1985): all runs of consecutive chunks of a text, in linear memory.
//
// A chunk is one character, or the characters between two places where a run may begin or end. A state stands for all
// runs that end at the same places, so its transitions are the chunks that follow there. A run lies within one text.
// Invariant: immutable; the transitions of a state are one range, sorted by the bytes of their chunks, without equals.
// Every state is the end of a run, and a run may end there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_set.h"
#include "base/hashing.h"

namespace constrain {

class SuffixAutomaton {
 public:
  static constexpr uint32_t start = 0;

  // The content of an automaton: texts of valid UTF-8, and for each text one byte for each character, not 0 if a run may
  // begin or end before it; no such bytes at all if it may do so everywhere. `json`: characters are written as in a JSON
  // string.
  struct Source {
    std::vector<std::string> texts, cuts;
    bool json = false;

    Hash hash() const;
  };

  explicit SuffixAutomaton(const Source& source);
  SuffixAutomaton() = default;  // to restore

  uint32_t begin(uint32_t state) const { return begins_[state]; }  // of the transitions of a state
  uint32_t end(uint32_t state) const { return begins_[state + 1]; }
  uint32_t target(uint32_t transition) const { return targets_[transition]; }
  std::string_view chunk(uint32_t transition) const {
    const uint32_t label = labels_[transition];
    return std::string_view(bytes_).substr(offsets_[label], offsets_[label + 1] - offsets_[label]);
  }
  uint32_t characters(uint32_t transition) const { return characters_[labels_[transition]]; }
  uint32_t longest(uint32_t state) const { return longest_[state]; }  // characters that may follow

  const Hash& hash() const { return hash_; }
  const ByteSet& alphabet() const { return alphabet_; }
  bool by_characters() const { return most_characters_ <= 1; }  // every chunk is one character
  size_t longest_chunk() const { return longest_chunk_; }       // bytes
  size_t longest_text() const { return longest_text_; }         // bytes
  size_t memory_bytes() const {
    return sizeof *this + 4 * (begins_.size() + targets_.size() + labels_.size() + longest_.size() + offsets_.size() + characters_.size()) + bytes_.size();
  }

  template <typename Archive>
  void visit(Archive& archive) {
    archive(hash_, alphabet_, most_characters_, longest_chunk_, longest_text_, bytes_, offsets_, characters_, begins_, labels_, targets_, longest_);
  }

 private:
  std::vector<uint32_t> read(const Source& source);
  void build(std::span<const uint32_t> chunks);

  Hash hash_;
  ByteSet alphabet_;
  uint32_t most_characters_ = 0;
  uint64_t longest_chunk_ = 0, longest_text_ = 0;
  std::string bytes_;                 // all chunks, sorted
  std::vector<uint32_t> offsets_;     // of each chunk in them; one entry more than chunks
  std::vector<uint32_t> characters_;  // by chunk
  std::vector<uint32_t> begins_;      // by state; one entry more than states
  std::vector<uint32_t> labels_;      // by transition: the number of its chunk
  std::vector<uint32_t> targets_;     // by transition
  std::vector<uint32_t> longest_;     // by state
};

}  // namespace constrain
