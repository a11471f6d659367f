// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rapidcheck.h>

#include "properties/case/codec.h"

namespace assay {

/// Byte strings for the codec: uniform bytes of a random length, so that a case is random up to
/// some field and simplest after it. Every byte spans its full range at any RapidCheck size.
rc::Gen<Bytes> gen_case_bytes();

/// Cases of one family through the codec; shrinks as the bytes do.
rc::Gen<Problem> gen_problem(const Limits &limits, Family family);

/// The case number `index` of a run with `seed`: the value of gen_problem() there.
Problem draw_problem(const Limits &limits, Family family, uint64_t seed);

/// Shows a case in its text form (found by RapidCheck).
void showValue(const Problem &p, std::ostream &os);

} // namespace assay
