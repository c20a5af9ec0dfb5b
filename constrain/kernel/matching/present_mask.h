// What a matcher knows of the mask of its place, by state:
//
//   state     the mask                                                             `accept` decides by
//   NotAsked  nobody has asked for it                                              asking, or stepping if that is enough
//   Plain     need only be copied: no limit, budget or remembered text narrows it  stepping
//   Exact     is judged token by token, and no limit or budget narrows it          stepping
//   Kept      a limit or the budget narrows it, or may                             the words kept
//
// Invariant: all of it holds for one place. A matcher that moves calls `forget` or `pass_on`.
#pragma once

#include <memory>
#include <utility>
#include <variant>

#include "base/bitmask.h"

namespace constrain {

class PresentMask {
 public:
  bool is_asked() const { return !std::holds_alternative<NotAsked>(state_); }
  bool is_plain() const { return std::holds_alternative<Plain>(state_); }
  bool is_exact() const { return std::holds_alternative<Exact>(state_); }
  const Bitmask* words() const { return is_kept() ? std::get<Kept>(state_).words.get() : nullptr; }
  // The tokens allowed at the limit of the lexeme, without regard to the budget; null if nobody has asked for them.
  std::shared_ptr<const Bitmask> at_limit() const { return is_kept() ? std::get<Kept>(state_).at_limit : nullptr; }
  bool is_ample() const {  // all tokens are known to fit in the budget
    if (is_kept()) return std::get<Kept>(state_).ample;
    return is_asked() ? is_plain() : std::get<NotAsked>(state_).ample;
  }

  void forget() { state_ = NotAsked{}; }  // from any state
  void find_ample() {                     // from NotAsked, which it stays
    if (!is_asked()) state_ = NotAsked{.ample = true};
  }
  void find_plain() { state_ = Plain{}; }  // from NotAsked or Exact
  void find_exact() { state_ = Exact{}; }  // from NotAsked or Exact
  void keep(Bitmask words, std::shared_ptr<const Bitmask> at_limit = nullptr) {  // from NotAsked or Exact
    state_ = Kept{std::make_shared<const Bitmask>(std::move(words)), std::move(at_limit), is_ample()};
  }
  // Forgets the state at a token. Returns what a rollback brings back of it: Exact, or Kept with its words alone.
  PresentMask pass_on() {
    PresentMask before;
    if (is_asked()) before.find_exact();
    if (Kept* kept = std::get_if<Kept>(&state_)) before.state_ = Kept{std::move(kept->words), nullptr, false};
    forget();
    return before;
  }

 private:
  struct NotAsked {
    bool ample;
  };
  struct Plain {};
  struct Exact {};
  struct Kept {
    std::shared_ptr<const Bitmask> words, at_limit;
    bool ample;
  };
  bool is_kept() const { return std::holds_alternative<Kept>(state_); }

  std::variant<NotAsked, Plain, Exact, Kept> state_;
};

}  // namespace constrain
