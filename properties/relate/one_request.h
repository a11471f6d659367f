// SPDX-License-Identifier: Apache-2.0
// One request of a batch, in a call of its own.
#pragma once

#include "properties/call/tensors.h"

namespace assay {

/// The case with no request but `row`, or of a merge no other row.
Problem one_request(const Problem &p, int row);

/// Copies the queries and keys of request `row` of `all` to request `place` of `some`, which has as
/// many of both.
void copy_request(Tensors &some, int place, const Tensors &all, int row);

} // namespace assay
