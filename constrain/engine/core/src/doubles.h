// Cells: the decimal numbers that read as one IEEE double, and their texts.
//
// Rounding to the nearest double, of two the even one, keeps the order of numbers: those that read as one double are an
// interval around it. Its ends, halfway to the doubles beside it, have up to 767 digits. Texts are compared with the
// first `significant_digits` of them: a text that goes on behind all of these counts as inside.
#pragma once

#include <string>
#include <vector>

#include "expressions.h"

namespace constrain {

constexpr size_t significant_digits = 20;

// One end: 0.DIGITS times ten to the power of `point`, and maybe something behind the digits. The first digit is not 0.
struct CellEnd {
  std::string digits;
  long long point = 0;
  bool cut = false;     // there are more digits
  bool inside = false;  // the end itself reads as the double; only matters if not cut
};
struct Cell {
  CellEnd low, high;
};
Cell cell_of(double number);  // finite and greater than 0

// Digits, with a point behind the first `whole` of them, of the numbers of a cell: those of `position` if it is one of
// the two that the cell's ends have. With `whole` <= 0 there is "0." and as many zeros in front.
ExprId cell_texts(ExpressionStore& store, const Cell& cell, long long position, long long whole);

}  // namespace constrain
