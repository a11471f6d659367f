// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "fuzz/target.h"
#include "kernels/bench/cells/cells_file.h"
#include "properties/cli/plugins/declaration_file.h"
#include "properties/cli/plugins/worker_loader.h"
#include "properties/sut/wire.h"
#include "properties/tools/campaign/fuzz_log.h"
#include "properties/tools/gate/project.h"

namespace assay::fuzz {

/// The readers of files and messages; the positive controls replace them one at a time.
struct ReadersUnderTest {
  bench::CellSet (*cells)(const std::string &, const std::string &) = bench::parse_cells;
  void (*declaration)(const assay_plugin &, const std::string &, const std::string &,
                      HeldPlugin &) = hold_to_text;
  std::unique_ptr<WorkerTable> (*hello)(const std::string &, const std::string &) = read_hello;
  gate::Project (*project)(const std::string &, const std::string &) = gate::parse_project;
  campaign::FuzzLog (*log)(const std::string &) = campaign::read_fuzz_log;
  bool (*reply)(std::span<const std::byte>, RunResult &, Tensors &) = wire::unpack_reply;
};

/// First byte: which reader has the rest.
std::string check_json_with(const ReadersUnderTest &readers, Input input);
inline std::string check_json(Input input) { return check_json_with({}, input); }

} // namespace assay::fuzz
