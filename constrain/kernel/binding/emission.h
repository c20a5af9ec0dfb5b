// JSON Schemas as grammars: goals and their shapes (constrain/json_schema/shapes/data.py), read as objects of Python,
// become the terminals and rules of a draft.
#pragma once

#include <nanobind/nanobind.h>

namespace constrain {

void bind_emission(nanobind::module_& m);

}  // namespace constrain
