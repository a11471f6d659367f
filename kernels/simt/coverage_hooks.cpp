// SPDX-License-Identifier: Apache-2.0
// Callbacks of clang's -fsanitize-coverage=trace-loads,trace-stores. Kernel code built with
// assay_hazard_instrumentation reports every load and store here. A load or store of the block's
// shared memory is checked like an access through a primitive.
#include <cstddef>

#include "kernels/simt/executor.h"

namespace {

inline void raw(const void *address, size_t bytes, bool write, const void *pc) {
  if (assay::simt::Executor *executor = assay::simt::Executor::active())
    executor->raw_access(address, bytes, write, pc);
}

} // namespace

#define ASSAY_COVERAGE_HOOK(name, bytes, write)                                                    \
  void name(const void *address) { raw(address, bytes, write, __builtin_return_address(0)); }

extern "C" {
ASSAY_COVERAGE_HOOK(__sanitizer_cov_load1, 1, false)
ASSAY_COVERAGE_HOOK(__sanitizer_cov_load2, 2, false)
ASSAY_COVERAGE_HOOK(__sanitizer_cov_load4, 4, false)
ASSAY_COVERAGE_HOOK(__sanitizer_cov_load8, 8, false)
ASSAY_COVERAGE_HOOK(__sanitizer_cov_load16, 16, false)
ASSAY_COVERAGE_HOOK(__sanitizer_cov_store1, 1, true)
ASSAY_COVERAGE_HOOK(__sanitizer_cov_store2, 2, true)
ASSAY_COVERAGE_HOOK(__sanitizer_cov_store4, 4, true)
ASSAY_COVERAGE_HOOK(__sanitizer_cov_store8, 8, true)
ASSAY_COVERAGE_HOOK(__sanitizer_cov_store16, 16, true)
}
