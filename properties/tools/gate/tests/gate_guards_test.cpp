// SPDX-License-Identifier: Apache-2.0
// Guarded lines: what a change must not do to its own judge, and what it may.
#include <gtest/gtest.h>

#include "properties/tools/gate/guards.h"
#include "properties/tools/gate/tests/gate_ids.h"

namespace assay::gate {
namespace {

struct Texts {
  std::map<std::string, std::string> base, head;
  std::vector<std::string> added;
};

RedLines guards_of(const std::vector<Change> &changes, const Texts &texts = {}) {
  const auto in = [](const std::map<std::string, std::string> &files) {
    return [&files](const std::string &path) {
      const auto at = files.find(path);
      return at == files.end() ? "" : at->second;
    };
  };
  return guarded({.changes = changes,
                  .room = own_room,
                  .base = in(texts.base),
                  .head = in(texts.head),
                  .added = [&](const std::string &) { return texts.added; }});
}

constexpr const char *kKernelFile = "kernels/decode/paged_attention_v1.cuh";

TEST(Rooms, AReportOfTheGateIsNoKernel) {
  for (const char *path : {"g.html", "reports/gate.sarif", "gate.md"})
    EXPECT_EQ(plugin_room(path, "findings"), Room::kWords) << path;
  EXPECT_EQ(plugin_room("tuned.json", "findings"), Room::kKernel);
}

TEST(Rooms, OfThisRepository) {
  EXPECT_EQ(own_room(kKernelFile), Room::kKernel);
  EXPECT_EQ(own_room("kernels/arch/math.cuh"), Room::kKernel);
  for (const char *judge :
       {"oracle/judge/judge.cpp", "properties/run/runner.cpp", "kernels/abi/assay.h",
        "kernels/simt/memory.cpp", "kernels/arch/simt/mma.cpp", "ci/test.sh", "CMakeLists.txt"})
    EXPECT_EQ(own_room(judge), Room::kJudge) << judge;
  for (const char *generator : {"properties/case/codec.cpp", "kernels/decode/tests/a.cpp",
                                "fuzz/fuzz_merge.cpp", "properties/tools/gate/tests/gate_test.cpp"})
    EXPECT_EQ(own_room(generator), Room::kGenerator) << generator;
  EXPECT_EQ(own_room("corpus/findings/a.case"), Room::kKept);
  EXPECT_EQ(own_room("corpus/mutants/a.mutant"), Room::kMutant);
  EXPECT_EQ(own_room("corpus/planted/a.mutant"), Room::kGenerator);
  EXPECT_EQ(own_room("corpus/changes/a.change"), Room::kWords);
  EXPECT_EQ(own_room("kernels/README.md"), Room::kWords);
}

TEST(Rooms, OverlayLeavesTheJudgeOfBase) {
  EXPECT_TRUE(overlaid(kKernelFile));
  EXPECT_TRUE(overlaid("corpus/mutants/a.mutant"));
  for (const char *judge : {"kernels/abi/assay.h", "kernels/simt/memory.cpp", "oracle/a.cpp",
                            "properties/run/runner.cpp", "corpus/findings/a.case", "ci/test.sh"})
    EXPECT_FALSE(overlaid(judge)) << judge;
}

TEST(Guards, AChangedJudgeBesideAKernelIsRed) {
  const Change kernel{How::kChanged, kKernelFile};
  EXPECT_EQ(ids(guards_of({kernel})), Ids{});
  EXPECT_EQ(ids(guards_of({{How::kChanged, "oracle/judge/judge.cpp"}})), Ids{});
  for (const char *judge : {"oracle/judge/judge.cpp", "properties/invariants/run_to_run.cpp",
                            "kernels/abi/plugin.h", "ci/check.sh"})
    EXPECT_EQ(ids(guards_of({kernel, {How::kChanged, judge}})), Ids{"judge-changed"}) << judge;
}

TEST(Guards, DeletedFindingsAndMutantsAreRedAlone) {
  EXPECT_EQ(ids(guards_of({{How::kDeleted, "corpus/findings/a.case"}})), Ids{"finding-deleted"});
  EXPECT_EQ(ids(guards_of({{How::kDeleted, "corpus/mutants/a.mutant"}})), Ids{"mutant-deleted"});
  EXPECT_EQ(ids(guards_of({{How::kAdded, "corpus/findings/a.case"}})), Ids{});
}

TEST(Guards, AWeakenedFindingIsRed) {
  const std::string fixed = "assay-case 1\nkernel = k\nbatch = 4\nend\n";
  const std::string open = "assay-case 1\nkernel = k\nstatus = open\nbatch = 4\nend\n";
  EXPECT_TRUE(weaker_finding(fixed, open));
  EXPECT_FALSE(weaker_finding(open, fixed));
  EXPECT_TRUE(weaker_finding(fixed, "assay-case 1\nkernel = k\nbatch = 1\nend\n"));
  EXPECT_TRUE(weaker_finding(open, "assay-case 1\nkernel = k\n"
                                   "status = quarantined until 2030-01-01\nbatch = 4\nend\n"));
  EXPECT_FALSE(weaker_finding(fixed, "assay-case 1\nnote = words\nkernel = k\nbatch = 4\nend\n"));
  const std::string path = "corpus/findings/a.case";
  EXPECT_EQ(ids(guards_of({{How::kChanged, path}}, {{{path, fixed}}, {{path, open}}, {}})),
            Ids{"finding-weakened"});
}

TEST(Guards, AKernelThatAsksWhereItRunsIsRed) {
  for (const char *line : {"if (getenv(\"ASSAY\")) return;", "#ifdef ASSAY_COMPILE_CUDA",
                           "thread_local int calls = 0;", "static int calls;",
                           "  static std::map<int, float> cache;", "open(\"/proc/self/exe\")"})
    EXPECT_NE(special_case(line), "") << line;
  for (const char *line :
       {"static constexpr int kTile = 64;", "static float load(const float *at);",
        "static_assert(kTile == 64);", "// getenv is not for kernels", "static const int kN = 3;",
        "static inline float scale(float x) {", "float static_sum = 0;"})
    EXPECT_EQ(special_case(line), "") << line;
  // std::regex has a stack frame for each character.
  EXPECT_NE(special_case("static int " + std::string(1 << 20, 'a') + ";"), "");
  EXPECT_EQ(ids(guards_of({{How::kChanged, kKernelFile}}, {{}, {}, {"static int calls;"}})),
            Ids{"special-case"});
}

} // namespace
} // namespace assay::gate
