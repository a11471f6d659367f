// SPDX-License-Identifier: Apache-2.0
// Arbitrary parameter structs through the entry points: words of a right call are overwritten,
// sizes, strides, types, pointers and struct_size alike, with what overflows at 2^31, 2^32 and
// 2^63. Memory is never there, so whatever reads it crashes.
//
//   1. *_supports, the sizes, assay_paged_attention_choose: a status of assay.h, with a message
//      exactly when it is a failure; the same answer twice; params unchanged; no undefined
//      arithmetic (UBSan).
//   2. A call that *_supports refuses is refused with the same status.
//   3. A size is written on success alone and below 2^62; what v2 and cascades support has the
//      workspace that they ask for.
//   4. A plan is never written into a buffer below the size that is asked for.
// Not run: what is supported. fuzz_problem does, with memory behind it.
#include "fuzz/abi_checks.h"

ASSAY_FUZZ_TARGET(assay::fuzz::check_abi)
