// SPDX-License-Identifier: Apache-2.0
// What shrinking tries: cases one step simpler than another.
#pragma once

#include <utility>
#include <vector>

#include "properties/case/problem.h"

namespace assay {

using Candidates = std::vector<Problem>;

/// Explicit placements name the pages of one shape; others do not survive a change of shape.
void drop_page_ids(Problem &p);

/// The case without the requests in [begin, end).
Problem without_requests(const Problem &p, int begin, int end);
/// The case with no other request than this one.
Problem only_request(const Problem &p, int keep);
/// With more requests than these there is no candidate for each: memory does not hold all.
inline constexpr int kManyRequests = 512;

/// Offers the case that `change` makes, where it is another one.
template <class Change>
void offer(Candidates &out, const Problem &p, Change change) {
  Problem c = p;
  change(c);
  if (c != p) out.push_back(std::move(c));
}

/// Tries to give a field each of the simpler values: `simplest`, halfway, one step.
template <class Set>
void towards(Candidates &out, const Problem &p, int now, int simplest, Set set) {
  if (now == simplest) return;
  const int step = now > simplest ? -1 : 1;
  for (int next : {simplest, simplest + (now - simplest) / 2, now + step}) {
    if (next == now) continue;
    Problem candidate = p;
    set(candidate, next);
    if (out.empty() || candidate != out.back()) out.push_back(std::move(candidate));
  }
}

template <class M>
void field_towards(Candidates &out, const Problem &p, M member, int simplest) {
  towards(out, p, p.*member, simplest, [&](Problem &c, int value) { c.*member = value; });
}

/// Fields that are made simpler together, in the order in which shrinking tries them.
enum class ShrinkField {
  kBatch,
  kLevels,
  kHeads,
  kLengths,
  kPages,
  kShape,
  kFeatures,
  kValues,
  kSettings,
  kJumps ///< several at once
};

/// Candidates one step simpler than `p`, the boldest first, by ShrinkField; without the jumps.
std::vector<Candidates> simpler_by_field(const Problem &p);

} // namespace assay
