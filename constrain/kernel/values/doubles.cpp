// Cells of doubles, and their texts.
#include "values/doubles.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace constrain {

namespace {

constexpr uint32_t limb = 1'000'000'000;

// Natural numbers of any length, in limbs of nine decimal digits, the last ones first.
class Natural {
 public:
  explicit Natural(uint64_t number) {
    for (; number != 0; number /= limb) limbs_.push_back(static_cast<uint32_t>(number % limb));
  }

  void multiply(uint32_t factor, unsigned times) {
    for (; times > 0; --times) {
      uint64_t carry = 0;
      for (uint32_t& each : limbs_) {
        carry += uint64_t{each} * factor;
        each = static_cast<uint32_t>(carry % limb);
        carry /= limb;
      }
      if (carry != 0) limbs_.push_back(static_cast<uint32_t>(carry));
    }
  }

  std::string digits() const {
    std::string result = std::to_string(limbs_.back());
    for (size_t i = limbs_.size() - 1; i-- > 0;) {
      const std::string more = std::to_string(limbs_[i]);
      result += std::string(9 - more.size(), '0') + more;
    }
    return result;
  }

 private:
  std::vector<uint32_t> limbs_;
};

// mantissa * 2**exponent
CellEnd cell_end(uint64_t mantissa, int exponent, bool inside) {
  CellEnd end;
  end.inside = inside;
  Natural number(mantissa);
  if (exponent >= 0) {
    number.multiply(2, static_cast<unsigned>(exponent));
  } else {
    number.multiply(5, static_cast<unsigned>(-exponent));  // and ten to that power is divided out
  }
  end.digits = number.digits();
  end.point = static_cast<long long>(end.digits.size()) + std::min(exponent, 0);
  end.digits.erase(end.digits.find_last_not_of('0') + 1);
  end.cut = end.digits.size() > significant_digits;
  if (end.cut) end.digits.resize(significant_digits);
  return end;
}

ByteSet digits_between(int low, int high) {
  ByteSet result;
  for (int digit = low; digit <= high; ++digit) result.add(static_cast<uint8_t>('0' + digit));
  return result;
}

// The texts of digits from the i-th on, with the decimal point; built from the last digit to the first.
class Digits {
 public:
  Digits(ExpressionStore& store, long long whole) : e_(store), whole_(whole) {}

  ExprId between(const CellEnd& low, const CellEnd* high) {
    const size_t count = std::max(low.digits.size(), high ? high->digits.size() : 0);
    const std::string least = padded(low.digits, count);
    const bool reaches = !low.cut && low.inside;  // the lower end itself belongs to the cell
    ExprId above = reaches ? any(count) : some_nonzero(count);
    if (!high) {
      for (size_t i = count; i-- > 0;) above = e_.alternation({from(i, least[i] + 1, '9', any(i + 1)), one(i, least[i], above), end(i, reaches && zeros_from(least, i))});
      return above;
    }
    const std::string most = padded(high->digits, count);
    ExprId below = high->cut ? any(count) : high->inside ? zeros(count) : ExprId::nothing;
    const size_t same = static_cast<size_t>(std::mismatch(least.begin(), least.end(), most.begin()).first - least.begin());
    for (size_t i = count; i-- > same + 1;) {
      above = e_.alternation({from(i, least[i] + 1, '9', any(i + 1)), one(i, least[i], above), end(i, reaches && zeros_from(least, i))});
      below = e_.alternation({from(i, '0', most[i] - 1, any(i + 1)), one(i, most[i], below), end(i, high->cut || high->inside || !zeros_from(most, i))});
    }
    ExprId both = e_.intersection({above, below});
    if (same < count) {
      both = e_.alternation({from(same, least[same] + 1, most[same] - 1, any(same + 1)), one(same, least[same], above), one(same, most[same], below),
                             end(same, reaches && zeros_from(least, same))});
    }
    for (size_t i = same; i-- > 0;) both = e_.alternation({one(i, least[i], both), end(i, reaches && zeros_from(least, i))});
    return both;
  }

 private:
  static std::string padded(std::string digits, size_t count) { return digits.append(count - digits.size(), '0'); }
  static bool zeros_from(const std::string& digits, size_t i) { return digits.find_first_not_of('0', i) == std::string::npos; }

  bool may_end(size_t i) const { return whole_ <= static_cast<long long>(i); }
  ExprId end(size_t i, bool matches) { return matches && may_end(i) ? ExprId::epsilon : ExprId::nothing; }
  ExprId one(size_t i, char digit, ExprId rest) { return from(i, digit, digit, rest); }
  ExprId from(size_t i, int low, int high, ExprId rest) {
    if (low > high) return ExprId::nothing;
    const ExprId digit = e_.concatenation(e_.bytes(digits_between(low - '0', high - '0')), rest);
    return whole_ > 0 && whole_ == static_cast<long long>(i) ? e_.concatenation(e_.literal("."), digit) : digit;
  }

  ExprId repeated(ExprId digit, size_t i) {
    if (whole_ < static_cast<long long>(i) || whole_ <= 0) return e_.repetition(digit, 0, unbounded);
    const auto left = static_cast<uint32_t>(whole_ - static_cast<long long>(i));
    const ExprId fraction = e_.concatenation(e_.literal("."), e_.repetition(digit, 1, unbounded));
    return e_.concatenation(e_.repetition(digit, left, left), e_.repetition(fraction, 0, 1));
  }
  ExprId any(size_t i) { return repeated(e_.bytes(digits_between(0, 9)), i); }
  ExprId zeros(size_t i) { return repeated(e_.literal("0"), i); }
  ExprId some_nonzero(size_t i) { return e_.intersection({any(i), e_.complement(zeros(i))}); }

  ExpressionStore& e_;
  const long long whole_;
};

}  // namespace

Cell cell_of(double number) {
  constexpr uint64_t hidden_bit = uint64_t{1} << 52;
  const auto bits = std::bit_cast<uint64_t>(number);
  const auto biased = static_cast<int>((bits >> 52) & 0x7FF);
  const uint64_t mantissa = (bits & (hidden_bit - 1)) | (biased > 0 ? hidden_bit : 0);
  const int exponent = std::max(biased, 1) - 1075;
  const bool even = mantissa % 2 == 0;
  const bool nearer_below = mantissa == hidden_bit && biased > 1;  // doubles below a power of two are twice as close
  return {nearer_below ? cell_end(4 * mantissa - 1, exponent - 2, even) : cell_end(2 * mantissa - 1, exponent - 1, even),
          cell_end(2 * mantissa + 1, exponent - 1, even)};
}

ExprId cell_texts(ExpressionStore& store, const Cell& cell, long long position, long long whole) {
  Digits digits(store, whole);
  const CellEnd power_of_ten{"1", position, false, true};
  const ExprId texts = position < cell.high.point ? digits.between(cell.low, nullptr)
                                                  : digits.between(position > cell.low.point ? power_of_ten : cell.low, &cell.high);
  if (whole > 0) return texts;
  return store.concatenation(store.literal("0." + std::string(static_cast<size_t>(-whole), '0')), texts);
}

}  // namespace constrain
