// The questions of the budget about one mask: how many are left, and which were asked.
//
// Once all are used up, or the answers took too much work, tokens that would need a further question are left out of the
// mask. Invariant: a question whose answer is known from another mask counts as well, so within that work a mask does not
// depend on earlier questions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/hashing.h"
#include "base/limits.h"
#include "expressions/expressions.h"

namespace constrain {

class BudgetQuestions {
 public:
  static constexpr size_t endless = ~size_t{0};

  BudgetQuestions() = default;  // as many as the kernel allows
  // `work`: steps on the expressions for all answers. `searched_places`: places that one search for a way to finish may
  // visit.
  BudgetQuestions(const ExpressionStore& expressions, size_t work, size_t most = endless, size_t searched_places = MAX_SEARCHED_PLACES.value)
      : expressions_(&expressions), work_end_(expressions.steps() + work), left_(most), searched_places_(searched_places) {}

  bool limited() const { return left_ != endless; }
  bool used_up() {
    const bool overworked = expressions_ && expressions_->steps() > work_end_;
    if (overworked) met_.add(Limit::mask_work);
    if (left_ == 0) met_.add(Limit::budget_questions);
    return overworked || left_ == 0;
  }
  size_t searched_places() const { return searched_places_; }

  // Whether the answer under this key may be used; it counts as `cost` questions.
  bool may_ask(Hash key, size_t questions) {
    if (!limited() || asked_.find(key)) return true;
    if (used_up()) return false;
    left_ -= std::min(left_, questions);
    asked_.insert(key, 1);
    return true;
  }

  void note(LimitSet limits) { met_.add(limits); }
  void note(Limit limit) { met_.add(limit); }
  LimitSet met() const { return met_; }  // limits met while deciding what fits

 private:
  const ExpressionStore* expressions_ = nullptr;
  size_t work_end_ = 0;
  size_t left_ = endless;
  size_t searched_places_ = MAX_SEARCHED_PLACES.value;
  FlatMap<Hash, uint8_t> asked_;
  LimitSet met_;
};

}  // namespace constrain
