// Cells in the kernel: the texts of the decimal numbers that read as one IEEE double, for matching.
//
// Rounding to the nearest double (to the even one in a tie) keeps the order of numbers, so the numbers that read as one
// double form an interval. Its ends, halfway to the neighbouring doubles, have up to 767 digits. Texts are compared
// with the first `significant_digits` of an end; a text that agrees in all of these and continues counts as inside.
#pragma once

#include <string>
#include <vector>

#include "expressions/expressions.h"

namespace constrain {

constexpr size_t significant_digits = 20;

// One end: 0.DIGITS times ten to the power of `point`, perhaps with further digits. The first digit is not 0.
struct CellEnd {
  std::string digits;
  long long point = 0;
  bool cut = false;     // further digits follow
  bool inside = false;  // the end itself reads as the double; matters only if not cut
};
struct Cell {
  CellEnd low, high;
};
Cell cell_of(double number);  // finite and greater than 0

// Digits of the numbers of a cell, with a point after the first `whole` of them, for the exponent `position` of one of
// the cell's ends. `whole` <= 0 puts "0." and as many zeros in front.
ExprId cell_texts(ExpressionStore& store, const Cell& cell, long long position, long long whole);

}  // namespace constrain
