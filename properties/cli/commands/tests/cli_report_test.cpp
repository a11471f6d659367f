// SPDX-License-Identifier: Apache-2.0
// How `check` reports findings: at once, by mistake, and in files of four formats.
#include <regex>

#include "properties/tests/cli_fixture.h"

namespace assay {
namespace {

TEST_F(Cli, AReportSaysWhatWasCheckedByWhatAndWhere) {
  const auto checked = [&](const char *plugin) {
    const Ran r =
        assay_program({"check", "--plugin", plugin, "--kernel", "reference_merge_state",
                       "--property", "merge_in_place", "--cases", "2", "--json", path("run.json"),
                       "--html", path("run.html"), "--markdown", path("run.md")});
    EXPECT_EQ(r.code, kExitPass) << r.out << r.err;
    return r.out;
  };
  const std::string out = checked(ASSAY_REFERENCE_PLUGIN);
  const nlohmann::json j = json("run.json"), library = j["library"];
  EXPECT_EQ(library["file"], ASSAY_REFERENCE_PLUGIN);
  const std::string id = library["id"];
  EXPECT_EQ(id.size(), 16u);
  EXPECT_EQ(std::string(j["date"]).size(), 10u);
  EXPECT_NE(j["machine"], "");
  EXPECT_TRUE(j["kernels"][0]["declaration"].contains("tile_tokens"));
  for (const char *page : {"run.html", "run.md"}) {
    const std::string text = read_text(path(page));
    EXPECT_NE(text.find(id), text.npos) << page;
  }
  EXPECT_NE(out.find(id), out.npos) << out;
  // Another library of the same name is told apart.
  fs::copy_file(ASSAY_REFERENCE_PLUGIN, path("other.so"));
  std::ofstream(path("other.so"), std::ios::app | std::ios::binary) << "x";
  checked(path("other.so").c_str());
  EXPECT_NE(json("run.json")["library"]["id"], id);
}

class CliReport : public Cli {
protected:
  void SetUp() override {
    Cli::SetUp();
    wrong_.run = first_input;
  }
  Ran check(std::vector<std::string> more) const {
    std::vector<std::string> args = {"check",  "--threads",     "1", "--cases", "4",
                                     "--json", path("out.json")};
    args.insert(args.end(), more.begin(), more.end());
    return program(one_kernel(wrong_), args);
  }
  std::string read(const std::string &name) const { return read_text(path(name)); }
  assay_kernel wrong_ = reference::kernel("reference_merge_state");
};

TEST_F(CliReport, OneMistakeIsOneFindingWithAllItsWitnesses) {
  const Ran r = check({});
  EXPECT_EQ(r.code, kExitFinding) << r.out << r.err;
  const nlohmann::json j = json("out.json");
  ASSERT_GE(j["found"].size(), 5u) << r.out;
  ASSERT_EQ(j["groups"].size(), 1u) << r.out;
  EXPECT_EQ(j["groups"][0]["properties"].size(), j["found"].size());
  EXPECT_EQ(j["groups"][0]["properties"][0], "within_budget");
  for (const auto &f : j["found"]) {
    EXPECT_EQ(f["group"], 0);
    EXPECT_EQ(std::string(f["fingerprint"]).size(), 16u);
    EXPECT_TRUE(fs::exists(std::string(f["file"])));
  }
  size_t at = 0, findings = 0;
  while ((at = r.out.find("FINDING", at)) != r.out.npos) {
    ++findings;
    ++at;
  }
  EXPECT_EQ(findings, 1u) << r.out;
  EXPECT_NE(r.out.find("also seen by: "), r.out.npos);
  EXPECT_NE(r.out.find(", 1 finding, 0 undecided"), r.out.npos) << r.out;
}

TEST_F(CliReport, AFindingIsNamedWhenItIsFound) {
  const Ran r = check({});
  const size_t named = r.out.find("found reference_merge_state within_budget: ");
  ASSERT_NE(named, r.out.npos) << r.out;
  EXPECT_LT(named, r.out.find("\nkernel  "));
}

TEST_F(CliReport, FailFastEndsAtTheFirstFinding) {
  Ran r = check({"--fail-fast"});
  EXPECT_EQ(r.code, kExitFinding) << r.out << r.err;
  EXPECT_NE(r.out.find("ENDED at the first finding: "), r.out.npos) << r.out;
  nlohmann::json j = json("out.json");
  ASSERT_EQ(j["found"].size(), 1u);
  EXPECT_TRUE(fs::exists(std::string(j["found"][0]["file"])));
  EXPECT_LT(j["cases"], 4);
  // The file it wrote is a kept finding of the next run, which then draws nothing.
  r = check({"--fail-fast"});
  EXPECT_EQ(r.code, kExitFinding) << r.out << r.err;
  j = json("out.json");
  EXPECT_EQ(j["cases"], 0);
  EXPECT_EQ(j["replayed"]["fail"], 1);
}

TEST_F(CliReport, FailFastOfARightKernelIsAPass) {
  const Ran r = assay_program({"check", "--fail-fast", "--kernel", "reference_merge_state",
                               "--property", "merge_identity", "--cases", "3"});
  EXPECT_EQ(r.code, kExitPass) << r.out << r.err;
  EXPECT_EQ(r.out.find("ENDED"), r.out.npos);
}

TEST_F(CliReport, WritesEveryFormat) {
  file("old.xml", "of an earlier run");
  const Ran r = check({"--junit", path("old.xml"), "--sarif", path("a.sarif"), "--markdown",
                       path("a.md"), "--html", path("a.html")});
  EXPECT_EQ(r.code, kExitFinding) << r.out << r.err;
  EXPECT_EQ(read("old.xml").rfind("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites", 0),
            0u);
  EXPECT_EQ(json("a.sarif")["runs"][0]["results"].size(), 1u);
  EXPECT_EQ(json("a.sarif")["runs"][0]["results"][0]["partialFingerprints"]["assayCause/v1"],
            json("out.json")["groups"][0]["fingerprint"]);
  EXPECT_EQ(read("a.md").rfind("**assay: FAIL**, 1 finding in ", 0), 0u);
  const std::string page = read("a.html");
  EXPECT_EQ(page.rfind("<!DOCTYPE html>", 0), 0u);
  EXPECT_NE(page.find("</html>\n"), page.npos);
}

TEST_F(CliReport, BytesThatAreNoTextStayInTheirReport) {
  wrong_.run = [](const void *) -> assay_status { return ASSAY_INVALID_ARGUMENT; };
  wrong_.last_error = [] { return "bad \xff byte \x01 <b>"; };
  EXPECT_EQ(check({"--junit", path("a.xml"), "--html", path("a.html")}).code, kExitFinding);
  EXPECT_NE(read("a.xml").find("bad \xef\xbf\xbd byte \xef\xbf\xbd &lt;b&gt;"), std::string::npos);
  EXPECT_EQ(read("a.html").find("<b>\n"), std::string::npos);
}

TEST_F(CliReport, BadFilesAreRefusedBeforeTheWork) {
  const Ran r = check({"--html", "/nonexistent/a.html"});
  expect_error(r, kExitUsage, "--html /nonexistent/a.html: cannot write");
  EXPECT_EQ(r.out, "");
  expect_error(check({"--sarif", "-"}), kExitUsage, "--sarif -: takes a file");
  expect_error(check({"--junit", path("a"), "--sarif", path("./a")}), kExitUsage,
               "is the file of --junit");
  expect_error(check({"--markdown", path("out.json")}), kExitUsage, "is the file of --json");
  expect_error(check({"--junit", ""}), kExitUsage, "--junit:");
}

TEST_F(CliReport, AReportThatCannotBeWrittenIsNoPass) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const Ran r =
      assay_program({"check", "--kernel", "reference_merge_state", "--property", "merge_identity",
                     "--cases", "3", "--json", path("out.json"), "--markdown", "/dev/full"});
  EXPECT_EQ(r.code, kExitHarness);
  EXPECT_EQ(r.err, "assay: --markdown /dev/full: cannot write\n");
  EXPECT_EQ(json("out.json")["exit"], kExitHarness);
}

// A mistake shows in every element of a row: some are enough, and once.
TEST_F(Cli, ExplainShowsThreeElementsThatAreWrong) {
  reference::WithBug defect(reference::Bug::kDropsLastKey);
  const std::string out =
      assay_program(
          {"explain", file("a.case", "assay-case 1\nfamily = paged\nkernel = reference_v1\n"
                                     "property = within_budget\nseq_lens = 9, 0\nbatch = 2\n"
                                     "q.regime = normal\nk.regime = normal\nend\n")})
          .out;
  const std::regex wrong("row 0 head 0 dim \\d+: got"), rest("\nand \\d\\d+ more\n");
  EXPECT_EQ(std::distance(std::sregex_iterator(out.begin(), out.end(), wrong), {}), 3) << out;
  EXPECT_TRUE(std::regex_search(out, rest)) << out;
}

} // namespace
} // namespace assay
