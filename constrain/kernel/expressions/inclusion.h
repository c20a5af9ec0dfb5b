// Inclusions in X* and in alternations that structure shows: constructors leave out parts that others include.
//
// Remembers inclusions in X* for one store, which every call gets. Invariant: a yes is certain; a no may be wrong.
#pragma once

#include <vector>

#include "base/hashing.h"
#include "base/ids.h"

namespace constrain {

class ExpressionStore;

class Inclusions {
 public:
  void absorb(ExpressionStore& store, std::vector<ExprId>& alternatives);
  bool excludes_itself(ExpressionStore& store, const std::vector<ExprId>& parts);

  template <typename Archive>
  void visit(Archive& archive) {
    archive(within_);
  }

 private:
  bool within(ExpressionStore& store, ExprId e, ExprId star);
  bool is_part_within(ExpressionStore& store, ExprId e, ExprId star);
  bool units_within(ExpressionStore& store, ExprId e, ExprId star);

  FlatMap<uint64_t, uint8_t> within_;
  uint32_t inclusions_ = 0;  // nested questions of units_within in progress
};

}  // namespace constrain
