// SPDX-License-Identifier: Apache-2.0
// What an interface excludes is not asked, and the report says so.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "properties/tests/cli_fixture.h"

namespace assay {
namespace {

/// A right kernel but where a request has no keys: its launch fails.
assay_status fails_for_no_keys(const void *params) {
  const auto *p = static_cast<const assay_paged_params *>(params);
  for (int row = 0; p != nullptr && row < p->kv.rows; ++row)
    if (p->kv.seq_lens[row] == 0) return ASSAY_LAUNCH_FAILED;
  return reference::kernel("reference_v1").run(params);
}

/// Which requests of a cascade have keys on some level.
std::vector<bool> with_keys(const assay_cascade_params &p) {
  std::vector<bool> out(static_cast<size_t>(p.batch));
  for (int l = 0; l < p.num_levels; ++l) {
    const assay_cascade_level &level = p.levels[l];
    for (int s = 0; s < level.kv.rows; ++s)
      for (int r = level.segment_indptr[s]; r < level.segment_indptr[s + 1]; ++r)
        if (level.kv.seq_lens[s] > 0) out[static_cast<size_t>(r)] = true;
  }
  return out;
}

/// The same of a cascade.
assay_status fails_for_no_level(const void *params) {
  const auto *p = static_cast<const assay_cascade_params *>(params);
  if (p != nullptr && std::ranges::count(with_keys(*p), false) > 0) return ASSAY_LAUNCH_FAILED;
  return reference::kernel("reference_cascade").run(params);
}

class CliAssume : public Cli {
protected:
  /// `check` of a kernel with another `run`, on this thread, where reference::bug counts.
  Ran check(const char *kernel, assay_status (*run)(const void *), const char *assume = nullptr) {
    assay_kernel wrong = reference::kernel(kernel);
    if (run != nullptr) wrong.run = run;
    std::vector<std::string> args = {
        "check",      "--property", "zero_query_counts_keys", "--threads",  "1",          "--cases",
        "10",         "--json",     path("r.json"),           "--markdown", path("r.md"), "--out",
        path("found")};
    if (assume != nullptr) args.insert(args.end(), {"--assume", assume});
    return program(one_kernel(wrong), args);
  }
};

TEST_F(CliAssume, EmptyRequestsAreAsked) {
  EXPECT_EQ(check("reference_v1", fails_for_no_keys).code, kExitFinding);
  EXPECT_EQ(json("r.json")["assumed"].size(), 0u);
  EXPECT_EQ(check("reference_cascade", fails_for_no_level).code, kExitFinding);
}

TEST_F(CliAssume, NoEmptyRequests) {
  const Ran r = check("reference_v1", fails_for_no_keys, "no_empty_requests");
  EXPECT_EQ(r.code, kExitPass) << r.out;
  EXPECT_NE(r.out.find(", assumed: no_empty_requests, "), r.out.npos) << r.out;
  const nlohmann::json report = json("r.json");
  EXPECT_EQ(report["assumed"], nlohmann::json({"no_empty_requests"}));
  EXPECT_EQ(report["kernels"][0]["not_covered"], nlohmann::json({"empty_row"}));
  EXPECT_NE(read_text(path("r.md")).find(", assumed: no_empty_requests, "), std::string::npos);
}

TEST_F(CliAssume, NoEmptyRequestsOfCascades) {
  const Ran r = check("reference_cascade", fails_for_no_level, "no_empty_requests");
  EXPECT_EQ(r.code, kExitPass) << r.out;
  // An empty prefix of a request with keys is no empty request.
  EXPECT_EQ(json("r.json")["kernels"][0]["not_covered"], nlohmann::json({"empty_row"}));
}

TEST_F(CliAssume, FinitePool) {
  const reference::WithBug late_mask(reference::Bug::kLateMask);
  EXPECT_EQ(check("reference_v1", nullptr).code, kExitFinding);
  const Ran r = check("reference_v1", nullptr, "finite_pool");
  EXPECT_EQ(r.code, kExitPass) << r.out;
  EXPECT_NE(r.out.find(", assumed: finite_pool, "), r.out.npos) << r.out;
}

TEST_F(CliAssume, AKernelThatIsWrongElsewhereFailsAndItsCaseSaysWhatWasAssumed) {
  const reference::WithBug wrong(reference::Bug::kDropsLastKey);
  const Ran r = check("reference_v1", nullptr, "no_empty_requests,finite_pool");
  EXPECT_EQ(r.code, kExitFinding);
  const nlohmann::json found = json("r.json")["found"][0];
  const std::string assumed = " --assume no_empty_requests,finite_pool";
  EXPECT_TRUE(found["reproduce"].get<std::string>().ends_with(assumed)) << found["reproduce"];
  EXPECT_TRUE(found["drawn_by"].get<std::string>().ends_with(assumed)) << found["drawn_by"];
  const Ran again = assay_program(
      {"replay", found["file"].get<std::string>(), "--assume", "no_empty_requests,finite_pool"});
  EXPECT_EQ(again.code, kExitFinding) << again.out;
  EXPECT_NE(again.out.find("\nassumed: no_empty_requests, finite_pool\n"), again.out.npos);
}

TEST_F(CliAssume, KnowsTheWords) {
  for (const std::string command : {"check", "gate"})
    expect_error(assay_program({command, "--assume", "finite_pool,no_pages"}), kExitUsage,
                 "--assume 'no_pages': not one of no_empty_requests, finite_pool");
  expect_error(assay_program({"check", "--kernel", "reference_v1", "--only", "seq_lens=0",
                              "--assume", "no_empty_requests"}),
               kExitUsage, "--only seq_lens=0: reference_v1 refuses it: --assume no_empty");
}

} // namespace
} // namespace assay
