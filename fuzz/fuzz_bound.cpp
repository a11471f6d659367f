// SPDX-License-Identifier: Apache-2.0
// The error bounds themselves. A correct kernel must be inside every interval the oracle gives it:
//   1. The emulated kernel of oracle/tests in any declared arithmetic, tile, number of states,
//      splits and merge stages, with approximate instructions anywhere within their limits: T0 and
//      LSE without the order, T0, T1, T2 and both LSE bounds with it.
//   2. The simt kernels under their declaration, T2 included.
//   3. The oracle always decides.
// Values are bit patterns of the input: subnormals, largest values, logits beyond 1e5.
#include "fuzz/bound_checks.h"

ASSAY_FUZZ_TARGET(assay::fuzz::check_bound)
