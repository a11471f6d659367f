// SPDX-License-Identifier: Apache-2.0
// Kernels of a worker (properties/sut/worker.h) as a table. What a worker says of itself is data of
// somebody else: it is held to everything that a plugin's table is.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/abi/plugin.h"
#include "properties/sut/worker.h"

namespace assay {

/// A table whose functions only refuse: its kernels run in the worker.
struct WorkerTable {
  assay_plugin plugin{};
  std::vector<assay_kernel> kernels;
  std::vector<std::string> names; ///< of the plugin, and of each kernel
};

/// The table of a hello. `command` names the worker in refusals. CliError with kExitUnsupported for
/// another version of the ABI and kExitUsage for what kernels/abi/plugin.h does not allow.
std::unique_ptr<WorkerTable> read_hello(const std::string &command, const std::string &hello);

/// Starts a worker of the pool; the table stays. CliError with kExitHarness where none starts.
const assay_plugin *load_worker(WorkerPool &pool);

} // namespace assay
