// SPDX-License-Identifier: Apache-2.0
// Reports of base that the next gate takes instead of running base again.
#include <nlohmann/json.hpp>

#include "properties/tools/gate/error.h"
#include "properties/tools/gate/tests/gate_repository.h"

namespace assay::gate {
namespace {

using GateKeptReports = GateRepository;

TEST_F(GateKeptReports, AreThoseOfBaseWithoutFindings) {
  const fs::path kept = repo() / "build/gate/reports", run = repo() / "build/gate/base-run";
  edit("const float sum = wa + wb;", "const float sum = wb + wa;");
  const json first = gate();
  EXPECT_TRUE(fs::exists(run / "1-tiny_merge.json"));
  const json second = gate();
  EXPECT_FALSE(fs::exists(run / "1-tiny_merge.json"));
  EXPECT_EQ(second.at("exit"), kPass);
  EXPECT_EQ(second.at("kernels"), first.at("kernels"));
  // A report that an interruption cut short is none.
  for (const fs::directory_entry &file : fs::recursive_directory_iterator(kept))
    if (file.is_regular_file()) std::ofstream(file.path()) << "{\"complete\"";
  EXPECT_EQ(gate().at("kernels"), first.at("kernels"));
  EXPECT_TRUE(fs::exists(run / "1-tiny_merge.json"));
  // Another base: nothing is taken from the one before.
  edit("const float sum = wb + wa;", "const float sum = wa + wb * 1.0001f;");
  commit("wrong from the start");
  edit("const float top = std::max(a.lse, b.lse);",
       "const float top = a.lse > b.lse ? a.lse : b.lse;");
  for (int i = 0; i < 2; ++i) { // and what found something is not kept
    EXPECT_EQ(gate().at("findings").at(0).at("state"), "known");
    EXPECT_TRUE(fs::exists(run / "1-tiny_merge.json"));
  }
}

} // namespace
} // namespace assay::gate
