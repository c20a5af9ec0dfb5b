// Steps of work on expressions, counted and limited.
//
// A step takes about a microsecond: a derivative is one, and more by the size of what is made or visited. Beyond the
// allowance, LimitError is thrown; after the thread's StopTime, Stopped. Invariant: the count of steps never falls.
#pragma once

#include <algorithm>
#include <utility>

#include "base/errors.h"
#include "base/limits.h"
#include "base/stop_time.h"

namespace constrain {

class Work {
 public:
  static constexpr size_t endless = ~size_t{0};
  static constexpr size_t parts_per_step = 8;  // made, sorted or visited

  // What the work from now on may take; each allowance holds until the next one.
  struct Allowance {
    size_t steps;
    const NamedLimit* limit;  // the limit that errors name; null for the rest of a caller's allowance
    uint32_t intersection_states = Limits{}.intersection_states;  // of one search
  };
  void allow(const Allowance& allowance) {
    const auto after = [this](size_t steps) { return steps > endless - spent_ ? endless : spent_ + steps; };
    end_ = after(allowance.steps);
    search_end_ = allowance.steps == endless ? endless : after(allowance.steps / 2);
    allowance_ = allowance;
  }
  uint32_t intersection_states() const { return allowance_.intersection_states; }
  // The count at which a search for a shortest match, of at most `steps`, stops and leaves the rest to decisions.
  size_t search_end(size_t steps) const { return std::min(spent_ + steps, search_end_); }

  // A scope with at least so many steps, even if the allowance is used up.
  class AtLeast {
   public:
    AtLeast(Work& work, size_t steps) : end_(work.end_), before_(work.end_) { end_ = std::max(end_, work.spent_ + steps); }
    AtLeast(const AtLeast&) = delete;
    ~AtLeast() { end_ = before_; }

   private:
    size_t& end_;
    const size_t before_;
  };

  // The scope of one question that may lead to further ones within it: bounds the depth of the stack.
  class Deciding {
   public:
    explicit Deciding(Work& work) : count_(work.decisions_) {
      if (count_ >= work.max_decisions_) {
        throw UndecidedError(limit_message("deciding what an expression matches asks too many questions within one another",
                                           MAX_NESTED_DECISIONS, work.max_decisions_), Limit::nested_decisions);
      }
      ++count_;
    }
    Deciding(const Deciding&) = delete;
    ~Deciding() { --count_; }

   private:
    uint32_t& count_;
  };
  void limit_decisions(uint32_t most) { max_decisions_ = most; }

  size_t spent() const { return spent_; }
  void spend(size_t steps) {
    spent_ += steps;
    if (spent_ > notice_at_) notice();
    if (spent_ > end_) overspent();
  }
  // Counts steps without a check: the next `spend` checks.
  void count(size_t steps) { spent_ += steps; }
  void count_parts(size_t parts) { spent_ += parts / parts_per_step; }
  // Items of a parser share the allowance.
  void count_items(size_t items) {
    items_ += items;
    if (items_ < items_per_step) return;
    spend(std::exchange(items_, items_ % items_per_step) / items_per_step);
  }

  // Sets a function that is called once, after about so many further steps; null for none.
  void notify_after(size_t steps, void (*function)(void*), void* argument) {
    if (function) notice_at_ = spent_ + steps;
    notice_ = function;
    notice_argument_ = argument;
  }

 private:
  static constexpr size_t items_per_step = 4;
  static constexpr size_t steps_between_looks = 4'096;  // at the time
  void notice() {
    notice_at_ = spent_ + steps_between_looks;
    if (notice_) std::exchange(notice_, nullptr)(notice_argument_);
    if (stop_time) stop_time->check();
  }
  [[noreturn]] void overspent() const {
    const NamedLimit* limit = allowance_.limit;
    const std::string name = limit ? limit->with_unit() : "the rest of an Allowance";
    throw LimitError("the expressions take too much work (" + name + "); simplify the pattern or its bounds", limit ? limit->met : Limit::compile_work);
  }

  size_t spent_ = 0;
  size_t items_ = 0;  // not yet spent
  size_t end_ = endless, search_end_ = endless;
  Allowance allowance_{endless, nullptr};
  uint32_t decisions_ = 0;  // in progress
  uint32_t max_decisions_ = Limits{}.nested_decisions;
  size_t notice_at_ = steps_between_looks;
  void (*notice_)(void*) = nullptr;
  void* notice_argument_ = nullptr;
};

}  // namespace constrain
