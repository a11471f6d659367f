// SPDX-License-Identifier: Apache-2.0
#include "properties/case/envelope.h"

#include <algorithm>

#include <fmt/format.h>

namespace assay {

std::string describe_values(const ShapeField &field, const std::vector<int> &values) {
  std::vector<int> sorted = values, asked = field.values;
  std::sort(sorted.begin(), sorted.end());
  std::sort(asked.begin(), asked.end());
  // The next one that was asked about: of sizes not every one is.
  const auto next = [&](int value) {
    const auto at = std::upper_bound(asked.begin(), asked.end(), value);
    return at == asked.end() ? value + 1 : *at;
  };
  std::string out;
  for (size_t i = 0; i < sorted.size();) {
    size_t last = i;
    while (field.labels.empty() && last + 1 < sorted.size() &&
           sorted[last + 1] == next(sorted[last]))
      ++last;
    out += (out.empty() ? "" : ", ") + field.label(sorted[i]);
    if (last > i) out += (last > i + 1 ? " .. " : ", ") + field.label(sorted[last]);
    i = last + 1;
  }
  return out;
}

namespace {

/// ' (reason)' of the first refused value that `is_one`.
template <class IsOne>
std::string reason_of(const Envelope::Field &answers, IsOne is_one) {
  for (size_t i = 0; i < answers.refused.size(); ++i)
    if (is_one(answers.refused[i]))
      return fmt::format(" ({})",
                         answers.reasons[i].empty() ? "without a reason" : answers.reasons[i]);
  return "";
}

std::string describe_range(const Envelope::Field &answers) {
  const int smallest = answers.smallest(), largest = answers.largest();
  std::string out = answers.refuses_below() ? fmt::format("{} .. {}", smallest, largest)
                                            : fmt::format("up to {}", largest);
  if (answers.refuses_below())
    out += "; not less" + reason_of(answers, [&](int value) { return value < smallest; });
  if (*std::max_element(answers.refused.begin(), answers.refused.end()) > largest)
    out += "; not more" + reason_of(answers, [&](int value) { return value > largest; });
  return out;
}

} // namespace

std::string describe_field(const ShapeField &field, const Envelope::Field &answers) {
  const std::string what = field.kind == FieldKind::kRange
                               ? describe_range(answers)
                               : fmt::format("{}; not {}{}", describe_values(field, answers.taken),
                                             describe_values(field, answers.refused),
                                             reason_of(answers, [](int) { return true; }));
  return fmt::format("{:<14} {}", field.name, what);
}

} // namespace assay
