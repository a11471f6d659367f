// SPDX-License-Identifier: Apache-2.0
// What part of all cases a kernel takes, field by field, and cases moved into it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "properties/case/problem.h"

namespace assay {

/// How a field's values are told apart: each by itself, by the largest, or zero from the rest.
enum class FieldKind { kEach, kAtMost, kZeroOrNot };

/// One field of a case that a call's shape depends on: fields.h, by its name there without the
/// number of its level.
struct ShapeField {
  std::string name;
  FieldKind kind = FieldKind::kEach;
  std::vector<int> values;           ///< worth asking about, simplest first
  std::map<int, std::string> labels; ///< of a choice or a flag
  std::string label(int value) const;
};

/// Those of a family's cases; none is about numbers in memory, or where pages lie.
std::vector<ShapeField> shape_fields(Family family);

/// `p` with the field, of every level, set to the value and what depends on it cut to its range.
Problem with_field(Problem p, const std::string &name, int value);

/// The values that a kernel takes; a field that is not there takes any.
struct Envelope {
  struct Field {
    std::vector<int> taken, refused;
    std::string reason; ///< the kernel's, for the first that it refused
  };
  std::map<std::string, Field> fields;

  bool takes(const ShapeField &field, int value) const;
  /// Moves a case into the envelope: each value that it does not take becomes one that it does,
  /// always the same one for the same case. Well formed under `limits`, or the case as it was.
  Problem fit(const Problem &p, const Limits &limits) const;
};

/// "bf16", "1, 3 .. 8": of values in order.
std::string describe_values(const ShapeField &field, const std::vector<int> &values);

} // namespace assay
