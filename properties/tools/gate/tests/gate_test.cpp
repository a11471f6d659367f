// SPDX-License-Identifier: Apache-2.0
// The parts of the gate that decide: each on what it must see and on what it must let pass.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "properties/cli/plugins/declaration_file.h"
#include "properties/tests/own_folder.h"
#include "properties/tools/gate/declarations.h"
#include "properties/tools/gate/error.h"
#include "properties/tools/gate/findings.h"
#include "properties/tools/gate/include_graph.h"
#include "properties/tools/gate/project.h"
#include "properties/tools/gate/regressions.h"
#include "properties/tools/gate/tests/gate_ids.h"

namespace assay::gate {
namespace {

using State = Classed::State;

json list_of(const json &declaration) {
  json full = {{"q_abs_error", 0.0},
               {"exp2_rel_error", 1e-7},
               {"log2_abs_error", 1e-7},
               {"rcp_rel_error", 1e-7},
               {"tanh_abs_error", 0.0},
               {"sum_depth", 16},
               {"max_parallel_states", 1},
               {"max_splits", 0},
               {"merge_stages", 0},
               {"mma_fraction_bits", 24},
               {"tile_tokens", 64},
               {"mma_block", 16},
               {"p_format", "call"},
               {"sum_format", "fp32"},
               {"exponential", "base2"},
               {"determinism", "run_to_run"},
               {"batch_invariance", "fixed"},
               {"nan_contract", "all"},
               {"checks_arguments", true},
               {"ragged_queries", true},
               {"shards", true},
               {"page_lists", true},
               {"key_order", true},
               {"plan", false}};
  full.update(declaration);
  return {{"fields", declaration_fields()},
          {"kernels",
           {{{"name", "k"}, {"target", "simt"}, {"family", "paged"}, {"declaration", full}}}}};
}

TEST(Declarations, WiderIsRedFieldByField) {
  const json base = list_of(json::object());
  EXPECT_TRUE(compare_declarations(base, base, "simt").red.empty());
  for (const json &wider : std::vector<json>{{{"exp2_rel_error", 2e-7}},
                                             {{"sum_depth", 17}},
                                             {{"mma_fraction_bits", 23}},
                                             {{"tile_tokens", 32}},
                                             {{"mma_block", 8}},
                                             {{"p_format", "e4m3"}},
                                             {{"sum_format", "bf16"}},
                                             {{"exponential", "natural"}},
                                             {{"determinism", "none"}},
                                             {{"batch_invariance", "none"}},
                                             {{"nan_contract", "values"}},
                                             {{"checks_arguments", false}},
                                             {{"ragged_queries", false}},
                                             {{"shards", false}},
                                             {{"page_lists", false}},
                                             {{"key_order", false}}})
    EXPECT_EQ(ids(compare_declarations(base, list_of(wider), "simt").red), Ids{"declaration-wider"})
        << wider;
  for (const json &narrower : std::vector<json>{{{"exp2_rel_error", 1e-8}},
                                                {{"p_format", "fp32"}},
                                                {{"batch_invariance", "always"}},
                                                {{"plan", true}}}) {
    const Comparison c = compare_declarations(base, list_of(narrower), "simt");
    EXPECT_TRUE(c.red.empty()) << narrower;
    EXPECT_EQ(c.notes.size(), 1u) << narrower;
  }
}

// Not "more" and "less": 16 -> 8 is either, by what the field counts.
TEST(Declarations, AChangeSaysWhatItDoesToTheBounds) {
  const json base = list_of({{"tile_tokens", 64}, {"sum_depth", 16}});
  const auto red = [&](const json &head) {
    const RedLines lines = compare_declarations(base, list_of(head), "simt").red;
    return lines.empty() ? "" : lines[0].text;
  };
  const auto note = [&](const json &head) {
    const Comparison c = compare_declarations(base, list_of(head), "simt");
    return c.notes.empty() ? "" : c.notes[0];
  };
  EXPECT_EQ(red({{"tile_tokens", 32}, {"sum_depth", 16}}),
            "tile_tokens 64 -> 32: its bounds get wider");
  EXPECT_EQ(note({{"tile_tokens", 64}, {"sum_depth", 8}}),
            "k: sum_depth 16 -> 8: its bounds get tighter; judged by what base declares");
  EXPECT_EQ(red({{"tile_tokens", 64}, {"sum_depth", 16}, {"checks_arguments", false}}),
            "checks_arguments true -> false: it promises less");
}

TEST(Declarations, AKernelThatIsGoneIsRedAndANewOneIsNot) {
  const json none = {{"kernels", json::array()}};
  EXPECT_EQ(ids(compare_declarations(list_of(json::object()), none, "simt").red),
            Ids{"kernel-gone"});
  EXPECT_TRUE(compare_declarations(none, list_of(json::object()), "simt").red.empty());
  EXPECT_TRUE(compare_declarations(list_of(json::object()), none, "cuda").red.empty());
}

json checked(const json &refused, int unsupported) {
  const json envelope =
      refused.empty() ? json::object()
                      : json({{"head_dim", {{"refused", refused}, {"reason", "head_dim: no"}}}});
  return {{"kernels", {{{"name", "k"}, {"envelope", envelope}, {"not_covered", json::array()}}}},
          {"runs",
           {{{"kernel", "k"},
             {"property", "p"},
             {"unsupported", unsupported},
             {"last_discard", "no"}}}}};
}

TEST(Envelopes, NarrowerIsRed) {
  EXPECT_TRUE(compare_envelopes(checked(json::array(), 0), checked(json::array(), 0)).empty());
  EXPECT_TRUE(compare_envelopes(checked({"256"}, 3), checked(json::array(), 0)).empty());
  const RedLines lines = compare_envelopes(checked({"256"}, 0), checked({"128", "256"}, 0));
  ASSERT_EQ(ids(lines), Ids{"envelope-narrower"});
  EXPECT_EQ(lines[0].text, "refuses head_dim = 128, which base takes (head_dim: no)");
  EXPECT_EQ(ids(compare_envelopes(checked(json::array(), 0), checked(json::array(), 1))),
            Ids{"envelope-narrower"});
}

TEST(Findings, AreToldApartByReplay) {
  const Replays never{3, 0, 0, ""}, always{3, 3, 3, ""}, sometimes{3, 1, 1, ""}, other{3, 3, 0, ""};
  const Replays absent{0, 0, 0, ""};
  const Seen by_head{false, true}, by_both{true, true}, by_base{true, false};
  EXPECT_EQ(state_of(never, always, by_head), State::kNew);
  EXPECT_EQ(state_of(absent, always, by_head), State::kNew);
  EXPECT_EQ(state_of(other, always, by_head), State::kNew); // base fails the case otherwise
  EXPECT_EQ(state_of(always, always, by_both), State::kKnown);
  EXPECT_EQ(state_of(always, never, by_base), State::kFixed);
  EXPECT_EQ(state_of(never, sometimes, by_head), State::kFlaky);
  EXPECT_EQ(state_of(never, never, by_head), State::kFlaky);
  EXPECT_TRUE(is_red(State::kNew, never, by_head));
  EXPECT_TRUE(is_red(State::kFlaky, never, by_head));
  EXPECT_FALSE(is_red(State::kFlaky, sometimes, by_head));
  EXPECT_FALSE(is_red(State::kFlaky, never, by_both));
  EXPECT_FALSE(is_red(State::kKnown, always, by_both));
  EXPECT_FALSE(is_red(State::kFixed, always, by_base));
}

TEST(Regressions, SignTest) {
  EXPECT_NEAR(sign_test(5, 0), 1.0 / 32, 1e-12);
  EXPECT_NEAR(sign_test(0, 5), 1, 1e-12);
  EXPECT_NEAR(sign_test(8, 2), 56.0 / 1024, 1e-12);
  EXPECT_EQ(sign_test(0, 0), 1);
}

json errors_of(const std::vector<double> &ratios) {
  json out = {{"kernels", {{{"name", "k"}}}}, {"runs", json::array()}};
  for (size_t i = 0; i < ratios.size(); ++i)
    out["runs"].push_back(
        {{"kernel", "k"},
         {"property", "p" + std::to_string(i)},
         {"cases", 40},
         {"findings", 0},
         {"worst",
          {{"ratio_t0", ratios[i]}, {"ratio_t1", 0.0}, {"ratio_t2", 0.0}, {"ratio_lse", 0.0}}}});
  return out;
}

TEST(Regressions, ErrorGrowsBeyondChanceAndBeyondAQuarter) {
  const std::vector<double> base(12, 0.3);
  const auto grew = [&](const std::vector<double> &head) {
    const auto shifts = error_shifts(errors_of(base), errors_of(head));
    EXPECT_EQ(shifts.size(), 1u);
    return shifts.at(0).grew;
  };
  EXPECT_FALSE(grew(base));
  EXPECT_TRUE(grew(std::vector<double>(12, 0.6)));
  EXPECT_FALSE(grew(std::vector<double>(12, 0.31))); // in every property, but by little
  EXPECT_FALSE(grew(std::vector<double>(12, 0.1)));
  std::vector<double> noise(12, 0.6); // half up, half down
  std::fill(noise.begin(), noise.begin() + 6, 0.15);
  EXPECT_FALSE(grew(noise));
}

json counted(const json &counters, int cases = 40) {
  return {{"runs",
           {{{"kernel", "k"},
             {"property", "p"},
             {"cases", cases},
             {"findings", 0},
             {"counters", counters}}}}};
}

TEST(Regressions, CountersThatGrowAreRed) {
  const json base = counted({{"global_load_bytes", 1000}, {"block_barriers", 10}, {"mma", 8}});
  const auto judged = [&](const json &head) { return judge_counters(counter_shifts(base, head)); };
  EXPECT_TRUE(judged(base).red.empty());
  EXPECT_TRUE(judged(base).notes.empty());
  const Figures more =
      judged(counted({{"global_load_bytes", 1060}, {"block_barriers", 10}, {"mma", 80}}));
  EXPECT_EQ(ids(more.red), Ids{"counters-grew"}); // a matter of bytes, not of instructions
  EXPECT_EQ(more.notes, std::vector<std::string>{
                            "k on the executor: global_load_bytes +6.00 %, mma +900.00 %"});
  const Figures little =
      judged(counted({{"global_load_bytes", 1040}, {"block_barriers", 9}, {"mma", 8}}));
  EXPECT_TRUE(little.red.empty());
  EXPECT_EQ(little.notes.size(), 1u);
  EXPECT_EQ(ids(judged(counted({{"launches", 1}})).red), Ids{"counters-grew"}); // none before
  EXPECT_TRUE(judged(counted({{"global_load_bytes", 9999}}, 41)).red.empty());  // other draws
  EXPECT_TRUE(judged(counted(json::object())).red.empty()); // a target that counts nothing
}

TEST(Regressions, CountersOfAllRoundsAreSummed) {
  const std::vector<CounterShift> rounds = {{"k", "launches", 100, 110},
                                            {"k", "launches", 900, 900}};
  EXPECT_TRUE(judge_counters(rounds).red.empty());
  EXPECT_EQ(judge_counters(rounds).notes,
            std::vector<std::string>{"k on the executor: launches +1.00 %"});
}

TEST(Regressions, AFigureIsRedWhereABlockIsLost) {
  const std::string head = "arch,kernel,arguments,threads,registers,stack,shared\n";
  const std::string base = head + "sm_90,v1,bf16 64,128,128,0,1024\n";
  EXPECT_TRUE(compare_figures(base, base).red.empty());
  EXPECT_TRUE(compare_figures(base, base).notes.empty());
  EXPECT_TRUE(compare_figures(base, head + "sm_90,v1,bf16 64,128,126,0,1024\n").red.empty());
  EXPECT_EQ(ids(compare_figures(base, head + "sm_90,v1,bf16 64,128,136,0,1024\n").red),
            Ids{"figures"});
  EXPECT_EQ(ids(compare_figures(base, head + "sm_90,v1,bf16 64,128,128,8,1024\n").red),
            Ids{"figures"});
}

std::string refusal(const std::string &text) {
  try {
    parse_project(text, "assay.toml");
  } catch (const GateError &e) {
    EXPECT_EQ(e.code, kUsage);
    return e.what();
  }
  return "";
}

TEST(ProjectFile, IsRead) {
  const Project p = parse_project(
      "# words\n[build]\ncommand = \"make -j2 lib\" # with words\nlibrary = \"out/lib.so\"\n"
      "[gate]\nbudget = \"5m\"\nkernels = [\"a\", \"b\"]\n"
      "[kernels]\na = \"src/a.cpp\"\nb = [\"src/b.cpp\", \"src/c.cpp\"]\n",
      "assay.toml");
  EXPECT_EQ(p.command, "make -j2 lib");
  EXPECT_EQ(p.library, "out/lib.so");
  EXPECT_EQ(p.budget, "5m");
  EXPECT_EQ(p.kernels, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(p.sources.at("b"), (std::vector<std::string>{"src/b.cpp", "src/c.cpp"}));
}

TEST(ProjectFile, NamesWhatIsWrong) {
  EXPECT_EQ(refusal("[build]\nlibrary = \"a.so\"\n"), "assay.toml: build.command is missing");
  EXPECT_EQ(refusal("[build]\ncommand = \"make\"\n"),
            "assay.toml: build.library is missing, and so is build.worker");
  EXPECT_EQ(refusal("[build]\nlibrary = \"a.so\"\nworker = \"python3 w.py\"\n"),
            "assay.toml: build.worker stands beside build.library; one of them has the kernels");
  EXPECT_EQ(parse_project("[build]\nworker = \"python3 w.py\"\n", "assay.toml").worker,
            "python3 w.py");
  EXPECT_EQ(refusal("[build]\ncommand = \"make\"\nlibrary = \"../a.so\"\n"),
            "assay.toml: build.library is no path inside the repository");
  EXPECT_EQ(refusal("[build]\ncommand = 3\n"),
            "assay.toml: build.command is not one text in quotes");
  EXPECT_EQ(refusal("command = \"make\"\n"), "assay.toml: command stands in no section");
  EXPECT_EQ(
      refusal("[build]\ncommands = \"make\"\n").rfind("assay.toml: build.commands is no key", 0),
      0u);
  EXPECT_EQ(refusal("[build]\ncommand = \"make\n").rfind("assay.toml:2: ", 0), 0u);
}

TEST(IncludeGraph, FollowsHeadersToTheirSources) {
  const std::map<std::string, std::string> files = {
      {"src/a.cpp", "#include \"common.h\"\n#include <vector>\n"},
      {"src/b.cpp", "#include \"lib/deep.cuh\"\n"},
      {"src/common.h", ""},
      {"src/common.cpp", "#include \"common.h\"\n"},
      {"include/lib/deep.cuh", ""}};
  std::vector<std::string> paths;
  for (const auto &[path, text] : files)
    paths.push_back(path);
  const IncludeGraph graph(paths, [&](const std::string &path) { return files.at(path); });
  using Set = std::set<std::string>;
  EXPECT_EQ(graph.reach({"src/a.cpp"}), (Set{"src/a.cpp", "src/common.h", "src/common.cpp"}));
  EXPECT_EQ(graph.reach({"src/b.cpp"}), (Set{"src/b.cpp", "include/lib/deep.cuh"}));
  EXPECT_EQ(graph.reach({"src/a.cpp"}, {"src/common.h"}), (Set{"src/a.cpp"}));
}

TEST(IncludeGraph, TellsOurKernelsApart) {
  const fs::path root = ASSAY_SOURCE_FOLDER;
  std::vector<std::string> paths;
  for (const auto &entry : fs::recursive_directory_iterator(root / "kernels"))
    if (entry.is_regular_file()) paths.push_back(entry.path().lexically_relative(root).string());
  const auto read = [&](const std::string &path) { return read_text(root / path); };
  const auto files = own_kernel_files(IncludeGraph(paths, read), read);
  EXPECT_EQ(files.size(), 9u);
  const auto touched = [&](const std::string &path) {
    std::string out;
    for (const auto &[kernel, of_kernel] : files)
      if (of_kernel.count(path) > 0) out += kernel + " ";
    return out;
  };
  EXPECT_EQ(touched("kernels/decode/paged_attention_v1.cuh"), "paged_attention_v1 ");
  EXPECT_EQ(touched("kernels/decode/v2_call.cpp"),
            "exchange_all exchange_scatter paged_attention_v2 sharded_attention ");
  EXPECT_EQ(touched("kernels/exchange/exchange_states.cuh"),
            "exchange_all exchange_scatter sharded_attention ");
  EXPECT_EQ(touched("kernels/blocks/split_kv.cuh"), "paged_attention_v2 tree_attention ");
  EXPECT_EQ(touched("kernels/blocks/sm90_core.cuh"), "cascade_attention tree_attention ");
  EXPECT_EQ(touched("kernels/tree/tree_attention.cuh"), "tree_attention ");
  EXPECT_EQ(touched("kernels/cascade/cascade_merge.cuh"), "cascade_attention ");
  EXPECT_EQ(touched("kernels/merge/merge_states.cuh"), "merge_states ");
  EXPECT_EQ(touched("kernels/arch/math.cuh"),
            "cascade_attention exchange_all exchange_scatter merge_state merge_states "
            "paged_attention_v1 paged_attention_v2 sharded_attention tree_attention ");
  EXPECT_EQ(touched("kernels/abi/tests/none.cpp"), "");
}

TEST(Reproduce, SaysWhatWasAssumed) {
  const Revision head{.plugin = "/tree/own.so",
                      .assumed = "no_empty_requests,finite_pool",
                      .program_shown = "assay",
                      .plugin_shown = "own.so"};
  EXPECT_EQ(replay_line(head, "f.case"),
            "assay replay f.case --plugin own.so --assume no_empty_requests,finite_pool");
}

} // namespace
} // namespace assay::gate
