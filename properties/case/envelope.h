// SPDX-License-Identifier: Apache-2.0
// What part of all cases a kernel takes, field by field, and cases moved into it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "properties/case/problem.h"

namespace assay {

/// How a field's values are told apart: each by itself, by the smallest and the largest, or -1
/// (none) from the rest.
enum class FieldKind { kEach, kRange, kNoneOrSome };

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
    std::vector<std::string> reasons; ///< the kernel's, of each that it refused

    bool refuses_below() const; ///< something below all that it takes
    int smallest() const;       ///< of a range: that it takes, of 0 where nothing below is refused
    int largest() const;
  };
  std::map<std::string, Field> fields;

  bool takes(const ShapeField &field, int value) const;
  /// The kernel's for a value of the field that it refuses; of the nearest that it was asked about.
  std::string reason_of(const std::string &field, int value) const;
  /// Moves a case into the envelope: each value that it does not take becomes one that it does,
  /// always the same one for the same case. Well formed under `limits`, or the case as it was.
  Problem fit(const Problem &p, const Limits &limits) const;
};

/// "bf16", "1, 3 .. 8": of values in order.
std::string describe_values(const ShapeField &field, const std::vector<int> &values);
/// "dtype bf16; not fp16 (only bf16)", a reason for each side of a range.
std::string describe_field(const ShapeField &field, const Envelope::Field &answers);

} // namespace assay
