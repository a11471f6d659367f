// SPDX-License-Identifier: Apache-2.0
// What a first user types wrongly, and what is said of it: about the command, not about a parser.
#include "properties/tests/cli_fixture.h"

namespace assay {
namespace {

class CommandLine : public Cli {
protected:
  static void says(std::vector<std::string> words, const std::string &line) {
    expect_error(assay_program(std::move(words)), kExitUsage, "assay: " + line + "\n");
  }
};

TEST_F(CommandLine, SaysWhatIsMissing) {
  says({"replay"}, "replay: files is missing: one .case or more (assay replay --help)");
  says({"shrink"}, "shrink: files is missing: a .case (assay shrink --help)");
  says({"explain"}, "explain: files is missing: a .case, or --declaration");
  says({"check", "--plugin"}, "--plugin needs a value: --plugin LIB");
}

TEST_F(CommandLine, SaysWhatIsTooMuch) {
  says({"shrink", "a", "b", "c"}, "shrink: takes one file, and got 3");
  says({"check", "a", "b"}, "check: takes no 'a' (assay check --help)");
}

TEST_F(CommandLine, KnowsWhichOptionWasMeant) {
  says({"check", "--sed", "4"},
       "check: unknown option --sed; is --seed meant? (assay check --help)");
  says({"check", "--kernels", "k"},
       "check: unknown option --kernels; is --kernel meant? (assay check --help)");
  says({"check", "--frobnicate"}, "check: unknown option --frobnicate (assay check --help)");
}

TEST_F(CommandLine, SaysWhichNumbersThereAre) {
  says({"check", "--cases", "x"}, "--cases: 'x' is not a whole number in 1 .. 100000000");
  says({"check", "--cases", "2.5"}, "--cases: '2.5' is not a whole number in 1 .. 100000000");
  says({"campaign", "--hours", "x"}, "--hours: 'x' is not a number in 0.001 .. 10000");
  says({"list", "foo"}, "what: 'foo' is none of kernels, properties, cells");
}

TEST_F(CommandLine, ASourceIsNoSharedLibrary) {
  const std::string path = file("kernel.cpp", std::string(9000, 'x'));
  says({"list", "--plugin", path}, path + ": is no shared library (invalid ELF header)");
}

TEST_F(CommandLine, OnlyIsReadBeforeAnythingIsReplayed) {
  const Ran r = assay_program({"check", "--only", "foo=3"});
  EXPECT_EQ(r.code, kExitUsage);
  EXPECT_EQ(r.out.find("replayed"), r.out.npos) << r.out;
  EXPECT_NE(r.err.find("--only foo: no field"), r.err.npos) << r.err;
}

TEST_F(CommandLine, ShapesThatNoKernelTakesAreNotCountedAsReplayed) {
  static assay_kernel kernel = reference::kernel("reference_v1");
  kernel.supports = [](const void *) -> assay_status { return ASSAY_UNSUPPORTED; };
  kernel.run = kernel.supports;
  const assay_plugin plugin = one_kernel(kernel);
  const auto shapes = [&](const char *property) {
    const std::string out = program(plugin, {"check", "--property", property, "--cases", "1"}).out;
    const size_t at = out.find("replayed 0 serving shapes, 0 fail, ");
    return at == out.npos ? out : out.substr(at, out.find('\n', at) - at);
  };
  // The shapes of this tree are about paged attention and within_budget.
  EXPECT_NE(shapes("within_budget").find(" more that no kernel here takes"), std::string::npos)
      << shapes("within_budget");
  EXPECT_EQ(shapes("run_to_run").find("no kernel here takes"), std::string::npos);
  EXPECT_NE(shapes("run_to_run").find(" about other kernels or properties"), std::string::npos);
}

} // namespace
} // namespace assay
