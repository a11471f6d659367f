// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "properties/sut/sut.h"
#include "properties/sut/worker.h"

namespace assay {

enum class WorkerUse {
  kRun,
  kAsk ///< whether it would run: where the worker says so apart, nothing is computed
};

/// Kernel `index` of a worker's hello, `kernel` in the harness's words. Its functions are never
/// called. A run throws WorkerError where the worker does not start.
std::unique_ptr<Sut> make_worker_sut(const assay_kernel &kernel, std::shared_ptr<WorkerPool> pool,
                                     int index, WorkerUse use);

} // namespace assay
