// SPDX-License-Identifier: Apache-2.0
// Declarations as files, and the command line of gate; what it decides stands in gate_*_test.cpp.
#include "properties/tests/cli_fixture.h"
#include "properties/tools/gate/red_line.h"

namespace assay {
namespace {

class CliGate : public Cli {
protected:
  nlohmann::json declared() const {
    EXPECT_EQ(assay_program({"list", "kernels", "--json", path("d.json")}).code, kExitPass);
    return json("d.json");
  }
  Ran check_by(const nlohmann::json &declarations) const {
    const std::string held = file("held.json", declarations.dump());
    return assay_program({"check", "--kernel", "reference_merge_state", "--property",
                          "within_budget", "--cases", "20", "--declared-by", held, "--json",
                          path("run.json")});
  }
  static nlohmann::json &merge_state(nlohmann::json &declarations) {
    for (nlohmann::json &kernel : declarations["kernels"])
      if (kernel["name"] == "reference_merge_state") return kernel["declaration"];
    throw std::logic_error("no such kernel");
  }
};

TEST_F(CliGate, AKernelIsHeldToADeclarationOfAFile) {
  nlohmann::json declarations = declared();
  EXPECT_EQ(check_by(declarations).code, kExitPass);
  const auto worst = [&] {
    return json("run.json")["kernels"][0]["worst"]["ratio_lse"].get<double>();
  };
  const double as_declared = worst();
  merge_state(declarations)["log2_abs_error"] = 0.01; // its own is 2^-22
  EXPECT_EQ(check_by(declarations).code, kExitPass);
  EXPECT_LT(worst(), as_declared / 100);
  // A narrower promise about NaN is one about which less is checked.
  merge_state(declarations) = declared()["kernels"][3]["declaration"];
  merge_state(declarations)["nan_contract"] = "none";
  EXPECT_EQ(check_by(declarations).code, kExitPass);
  EXPECT_EQ(json("run.json")["kernels"][0]["nan_contract"], nlohmann::json::array());
}

TEST_F(CliGate, ADeclarationThatBoundsNothingIsRefused) {
  const auto refused = [&](const char *field, const nlohmann::json &value, const char *why) {
    nlohmann::json declarations = declared();
    merge_state(declarations)[field] = value;
    expect_error(check_by(declarations), kExitUsage, why);
  };
  refused("exp2_rel_error", 1.0, "reference_merge_state: exp2_rel_error is 1, expected 0 to below");
  refused("p_format", "fp64", "p_format: unknown word 'fp64'");
  refused("determinism", 1, "determinism: expected a text");
  refused("sum_depth", 1.5, "sum_depth: expected an integer of 32 bits");
  refused("checks_arguments", 0, "checks_arguments: expected true or false");
  refused("nan_contract", "every", "nan_contract: unknown word 'every'");
  expect_error(assay_program({"check", "--declared-by", path("none.json")}), kExitUsage,
               "none.json: cannot read");
  expect_error(assay_program({"check", "--declared-by", file("x.json", "[]")}), kExitUsage,
               "no document of 'assay list kernels --json'");
  const auto entry = [&](const char *text, const char *why) {
    const std::string held = file("y.json", "{\"kernels\": [" + std::string(text) + "]}");
    expect_error(assay_program({"check", "--declared-by", held}), kExitUsage, why);
  };
  entry("5", "y.json: kernels[0]: is no object");
  entry("{}", "kernels[0]: no name");
  entry(R"({"name": 5, "target": "simt"})", "kernels[0]: name: expected a text");
  entry(R"({"name": "reference_merge_state", "target": "simt"})", "merge_state: no declaration");
}

TEST_F(CliGate, TakesTwoLibrariesOrARepository) {
  expect_error(assay_program({"gate"}), kExitUsage, "give --base REF, or");
  expect_error(assay_program({"gate", "--base-plugin", "a.so"}), kExitUsage, "go together");
  expect_error(
      assay_program({"gate", "--base", "m", "--base-plugin", "a.so", "--head-plugin", "b.so"}),
      kExitUsage, "give --base REF, or");
  expect_error(assay_program({"gate", "--base", "m", "--target", "cuda"}), kExitUnsupported,
               "target cuda: ");
  expect_error(assay_program({"gate", "--base", "m", "--target", "tpu"}), kExitUsage,
               "unknown target tpu");
  expect_error(assay_program({"gate", "--base", "m", "--budget", "5"}), kExitUsage, "such as 60s");
}

TEST_F(CliGate, AcceptsOnlyWhatAPersonMayAccept) {
  const auto accept = [](const char *id) {
    return assay_program({"gate", "--base", "m", "--accept", id});
  };
  expect_error(accept("sloower"), kExitUsage, "--accept sloower: no red line has this id");
  expect_error(accept("sloower"), kExitUsage, "error-grew");
  expect_error(accept("new-finding"), kExitUsage, "--accept new-finding: no person can let that");
  EXPECT_EQ(accept("slower").err.find("--accept"), std::string::npos);
  // The table for people says the same.
  const std::string page = read_text(ASSAY_GATE_PAGE);
  for (const gate::LineId &id : gate::line_ids()) {
    const size_t at = page.find("`" + id.id + "`");
    ASSERT_NE(at, page.npos) << id.id;
    const std::string row = page.substr(at, page.find('\n', at) - at);
    EXPECT_EQ(row.ends_with("| yes |"), id.acceptable) << row;
  }
}

TEST_F(CliGate, JudgesTwoLibraries) {
  const Ran same = assay_program({"gate",
                                  "--base-plugin",
                                  ASSAY_TINY_PLUGIN,
                                  "--head-plugin",
                                  ASSAY_TINY_PLUGIN,
                                  "--judge",
                                  ASSAY_PROGRAM,
                                  "--budget",
                                  "1s",
                                  "--assume",
                                  "no_empty_requests,finite_pool",
                                  "--json",
                                  path("g.json"),
                                  "--html",
                                  path("g.html"),
                                  "--markdown",
                                  path("g.md"),
                                  "--junit",
                                  path("g.xml"),
                                  "--sarif",
                                  path("g.sarif")});
  EXPECT_EQ(same.code, kExitPass) << same.out << same.err;
  EXPECT_NE(same.out.find("PASS: 0 red lines"), std::string::npos);
  EXPECT_EQ(json("g.json")["complete"], true);
  EXPECT_EQ(json("g.json")["kernels"].size(), 1u);
  const nlohmann::json assumed = {"no_empty_requests", "finite_pool"};
  EXPECT_EQ(json("g.json")["assumed"], assumed);
  EXPECT_EQ(json("g.json")["checks"][0]["head"]["assumed"], assumed);
  EXPECT_NE(same.out.find(", assumed: no_empty_requests, finite_pool, "), same.out.npos);
  for (const char *name : {"g.html", "g.md", "g.xml", "g.sarif"})
    EXPECT_GT(fs::file_size(path(name)), 100u) << name;
  const Ran gone = assay_program({"gate", "--base-plugin", ASSAY_TINY_PLUGIN, "--head-plugin",
                                  path("none.so"), "--judge", ASSAY_PROGRAM, "--quiet"});
  EXPECT_EQ(gone.code, kExitFinding);
  EXPECT_NE(gone.out.find("refused"), std::string::npos) << gone.out;
}

} // namespace
} // namespace assay
