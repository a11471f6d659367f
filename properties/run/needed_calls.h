// SPDX-License-Identifier: Apache-2.0
// Which earlier calls a failure needs, where it does not happen in a process of its own.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "properties/case/problem.h"

namespace assay {

/// Cases that run one after another in a new process, the last of which fails. `before` is empty
/// where nothing of that kind was found.
struct CallsBefore {
  std::vector<Problem> before;
  Problem last;
};

/// The fewest cases of `history`, which ran in this order in front of `last`, that let it fail.
/// That is one case where one suffices, else the newest ones without those that are not needed.
/// `fails` runs cases in a new process and says whether the last one fails. `spent` ends the
/// search. No field of a case is changed.
CallsBefore needed_calls(const std::vector<Problem> &history, const Problem &last,
                         const std::function<bool(const CallsBefore &)> &fails,
                         const std::function<bool()> &spent);

/// Names of fields, as a case's text has them.
using FieldNames = std::set<std::string>;

/// `p` with these fields as `from` has them; nothing where that is no case.
std::optional<Problem> with_fields_of(const Problem &p, const Problem &from,
                                      const FieldNames &names);

/// Which fields of the earlier of two cases must be other than the last one's for that to fail: one
/// where one suffices, else those that were left when the others had been made equal.
FieldNames needed_differences(const Problem &earlier, const Problem &last,
                              const std::function<bool(const CallsBefore &)> &fails,
                              const std::function<bool()> &spent);

/// The fields in which `earlier` differs from `last`, at most six: "seq_lens = 64, no window = 7".
std::string how_earlier_differs(const Problem &earlier, const Problem &last);

} // namespace assay
