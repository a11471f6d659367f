// SPDX-License-Identifier: Apache-2.0
// What shrinking tries: cases one step simpler than another.
#pragma once

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
/// Of more than these there is no candidate for each: all of them are more than memory holds.
inline constexpr int kManyRequests = 512;

/// Candidates one step simpler than `p` in a single field, the boldest first, by field.
std::vector<Candidates> simpler_by_field(const Problem &p);

} // namespace assay
