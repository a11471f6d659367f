// SPDX-License-Identifier: Apache-2.0
// `assay merge-reports`: shards become the document of one run; what does not belong together, and
// what is no report, is refused by file and field.
#include "properties/tests/cli_fixture.h"

namespace assay {
namespace {

class MergeReports : public Cli {
protected:
  void SetUp() override {
    Cli::SetUp();
    wrong_.run = first_input;
  }
  Ran check(const assay_plugin &plugin, const std::string &seed, const std::string &name,
            std::vector<std::string> more = {}) const {
    std::vector<std::string> args = {"--seed",  seed, "check",  "--threads", "1",
                                     "--cases", "3",  "--json", path(name)};
    args.insert(args.end(), more.begin(), more.end());
    return program(plugin, args);
  }
  Ran merge(std::vector<std::string> names, std::vector<std::string> more = {}) const {
    std::vector<std::string> args = {"merge-reports", "--json", path("merged.json")};
    for (const std::string &name : names)
      args.push_back(path(name));
    args.insert(args.end(), more.begin(), more.end());
    return assay_program(args);
  }
  nlohmann::json right(const std::string &seed, const std::string &name) const {
    const Ran r = check(reference::plugin(), seed, name,
                        {"--kernel", "reference_merge_state", "--property", "merge_identity"});
    EXPECT_EQ(r.code, kExitPass) << r.out << r.err;
    return json(name);
  }
  void write(const std::string &name, const nlohmann::json &document) const {
    file(name, document.dump());
  }
  /// The document at `name` with one field changed is refused with `why`.
  void refuses(const nlohmann::json &good, const char *pointer, nlohmann::json value,
               const std::string &why) const {
    nlohmann::json bad = good;
    bad[nlohmann::json::json_pointer(pointer)] = std::move(value);
    write("bad.json", bad);
    expect_error(merge({"bad.json"}), kExitUsage, path("bad.json") + ": " + why);
  }
  assay_kernel wrong_ = reference::kernel("reference_merge_state");
};

TEST_F(MergeReports, CountsAreSummedAndWorstErrorsKept) {
  const nlohmann::json a = right("1", "a.json"), b = right("2", "b.json");
  const Ran r =
      merge({"a.json", "b.json"}, {"--html", path("merged.html"), "--junit", path("merged.xml")});
  EXPECT_EQ(r.code, kExitPass) << r.out << r.err;
  EXPECT_NE(r.out.find("seeds 1, 2"), r.out.npos) << r.out;
  const nlohmann::json m = json("merged.json");
  EXPECT_EQ(m["cases"], a["cases"].get<int>() + b["cases"].get<int>());
  EXPECT_EQ(m["runs"].size(), 1u);
  EXPECT_EQ(m["runs"][0]["cases"], m["cases"]);
  EXPECT_EQ(m["kernels"][0]["cases"], m["cases"]);
  EXPECT_EQ(m["seeds"], nlohmann::json({1, 2}));
  for (const auto &[name, count] : a["runs"][0]["classes"].items())
    EXPECT_EQ(m["runs"][0]["classes"][name],
              count.get<int>() + b["runs"][0]["classes"].value(name, 0));
  const auto worst = [](const nlohmann::json &d) {
    return d["kernels"][0]["worst"]["ratio_t0"].get<double>();
  };
  EXPECT_EQ(worst(m), std::max(worst(a), worst(b)));
  EXPECT_TRUE(fs::file_size(path("merged.html")) > 1000 && fs::file_size(path("merged.xml")) > 100);
}

TEST_F(MergeReports, WhatWasAssumedIsThatOfAllShards) {
  nlohmann::json a = right("1", "a.json"), b = right("2", "b.json");
  a["assumed"] = {"finite_pool"};
  write("a.json", a);
  expect_error(merge({"a.json", "b.json"}), kExitUsage,
               "b.json: assumed is [], that of " + path("a.json") + " is [\"finite_pool\"]");
  b["assumed"] = {"finite_pool"};
  write("b.json", b);
  const Ran r = merge({"a.json", "b.json"});
  EXPECT_NE(r.out.find(", assumed: finite_pool, "), r.out.npos) << r.out;
  EXPECT_EQ(json("merged.json")["assumed"], a["assumed"]);
}

TEST_F(MergeReports, AMergedReportIsAReport) {
  right("1", "a.json");
  right("2", "b.json");
  right("3", "c.json");
  ASSERT_EQ(merge({"a.json", "b.json"}).code, kExitPass);
  fs::rename(path("merged.json"), path("ab.json"));
  EXPECT_EQ(merge({"ab.json", "c.json"}).code, kExitPass);
  EXPECT_EQ(json("merged.json")["seeds"], nlohmann::json({1, 2, 3}));
  expect_error(merge({"ab.json", "a.json"}), kExitUsage, "seed 1: merge_identity was checked on");
}

TEST_F(MergeReports, OneMistakeOfTwoShardsIsOneFinding) {
  const assay_plugin plugin = one_kernel(wrong_);
  ASSERT_EQ(check(plugin, "1", "a.json", {"--out", path("fa")}).code, kExitFinding);
  ASSERT_EQ(check(plugin, "2", "b.json", {"--out", path("fb")}).code, kExitFinding);
  const Ran r =
      merge({"a.json", "b.json"}, {"--sarif", path("m.sarif"), "--markdown", path("m.md")});
  EXPECT_EQ(r.code, kExitFinding) << r.out << r.err;
  const nlohmann::json a = json("a.json"), b = json("b.json"), m = json("merged.json");
  EXPECT_EQ(m["found"].size(), a["found"].size() + b["found"].size());
  EXPECT_EQ(m["groups"].size(),
            a["groups"][0]["fingerprint"] == b["groups"][0]["fingerprint"] ? 1 : 2);
  for (const auto &found : m["found"])
    EXPECT_LT(found["group"].get<size_t>(), m["groups"].size());
  for (size_t i = 0; i < m["groups"].size(); ++i)
    EXPECT_EQ(m["found"][m["groups"][i]["found"].get<size_t>()]["group"], i);
}

// Each shard has one case of a class that needs two; together they have enough.
TEST_F(MergeReports, CoverageIsThatOfAll) {
  nlohmann::json a = right("1", "a.json"), b = right("2", "b.json");
  for (nlohmann::json *d : {&a, &b}) {
    (*d)["runs"][0]["classes"]["rare"] = 1;
    (*d)["runs"][0]["missing"] = {"rare"};
    (*d)["exit"] = int{kExitHarness};
  }
  write("a.json", a);
  write("b.json", b);
  EXPECT_EQ(merge({"a.json"}).code, kExitHarness);
  const Ran r = merge({"a.json", "b.json"});
  EXPECT_EQ(r.code, kExitPass) << r.out << r.err;
  EXPECT_TRUE(json("merged.json")["runs"][0]["missing"].empty());
}

TEST_F(MergeReports, AFailureThatNothingExplainsStays) {
  nlohmann::json a = right("1", "a.json");
  right("2", "b.json");
  a["exit"] = int{kExitHarness};
  write("a.json", a);
  EXPECT_EQ(merge({"a.json", "b.json"}).code, kExitHarness);
}

TEST_F(MergeReports, AKeptFindingCountsOnce) {
  nlohmann::json a = right("1", "a.json"), b = right("2", "b.json");
  for (nlohmann::json *d : {&a, &b}) {
    (*d)["replayed"]["ledger"] = {{{"file", "k.case"},
                                   {"status", "fixed"},
                                   {"issue", ""},
                                   {"findings", 1},
                                   {"unexpected_pass", false}}};
    (*d)["replayed"]["results"] = {{{"file", "k.case"},
                                    {"kernel", "reference_merge_state"},
                                    {"property", "merge_identity"},
                                    {"verdict", "FAIL"},
                                    {"message", "no"}}};
    (*d)["replayed"]["fail"] = 1;
    (*d)["findings"] = 1;
    (*d)["exit"] = int{kExitFinding};
  }
  write("a.json", a);
  write("b.json", b);
  EXPECT_EQ(merge({"a.json", "b.json"}).code, kExitFinding);
  EXPECT_EQ(json("merged.json")["findings"], 1);
  EXPECT_EQ(json("merged.json")["replayed"]["results"].size(), 1u);
}

TEST_F(MergeReports, RefusesWhatDoesNotBelongTogether) {
  const nlohmann::json a = right("1", "a.json");
  expect_error(merge({"a.json", "a.json"}), kExitUsage,
               "seed 1: merge_identity was checked on reference_merge_state with it in");
  nlohmann::json b = a;
  b["seed"] = 2;
  b["version"] = "9.9";
  write("b.json", b);
  expect_error(merge({"a.json", "b.json"}), kExitUsage, path("b.json") + ": version is '9.9'");
  b["version"] = a["version"];
  b["target"] = "cuda";
  write("b.json", b);
  expect_error(merge({"a.json", "b.json"}), kExitUsage, ": target is 'cuda'");
  b["target"] = a["target"];
  // A library that was built again has the same names and other code.
  nlohmann::json c = a, d = b;
  c["library"] = {{"name", "my"}, {"file", "my.so"}, {"id", "0123456789abcdef"}};
  d["library"] = {{"name", "my"}, {"file", "my.so"}, {"id", "fedcba9876543210"}};
  write("c.json", c);
  write("d.json", d);
  expect_error(merge({"c.json", "d.json"}), kExitUsage,
               path("d.json") + ": its library is my fedcba9876543210, that of " + path("c.json") +
                   " is my 0123456789abcdef");
  b["kernels"][0]["name"] = "other";
  write("b.json", b);
  expect_error(merge({"a.json", "b.json"}), kExitUsage, ": kernels are 'other'");
}

TEST_F(MergeReports, RefusesWhatIsNoReport) {
  expect_error(merge({"absent.json"}), kExitUsage, path("absent.json") + ": cannot read");
  expect_error(merge({"."}), kExitUsage, "cannot read");
  for (const char *text : {"", "{", "[]", "7", "{\"complete\": true} x"}) {
    file("bad.json", text);
    expect_error(merge({"bad.json"}), kExitUsage, "no document of 'assay check --json'");
  }
  file("bad.json", std::string(100'000, '['));
  expect_error(merge({"bad.json"}), kExitUsage, "no document of 'assay check --json'");
  file("bad.json", "{\"complete\": false}");
  expect_error(merge({"bad.json"}), kExitUsage, "complete is false");
}

TEST_F(MergeReports, NamesTheFieldThatIsWrong) {
  const nlohmann::json a = right("1", "a.json");
  refuses(a, "/runs/0/cases", "x", "runs[0].cases is \"x\", expected an integer in 0 .. 2^53");
  refuses(a, "/runs/0/cases", -1, "runs[0].cases is -1");
  refuses(a, "/runs/0/cases", 1e300, "runs[0].cases is 1e+300");
  refuses(a, "/runs/0/classes", {{"c", {1}}}, "runs[0].classes.c is a list");
  refuses(a, "/runs/0/started", 1, "runs[0].started is 1, expected true or false");
  refuses(a, "/kernels/0/worst", 3, "kernels[0].worst is 3, expected an object");
  refuses(a, "/kernels/0/median_budget", nullptr, "kernels[0].median_budget is null");
  refuses(a, "/kernels/0/reached", {{"rows", {{"ten", 1}, {"most", -1}, {"end", ""}}}},
          "kernels[0].reached.rows.most is -1");
  refuses(a, "/exit", 7, "exit is 7");
  refuses(a, "/seed", -3, "seed is -3");
  refuses(a, "/seeds", {1.5}, "seeds[0] is 1.5");
  refuses(a, "/assumed", {1.5}, "assumed[0] is 1.5");
  refuses(a, "/found", {{{"kernel", 1}}}, "found[0].kernel is 1, expected a text");
  refuses(a, "/groups",
          {{{"kernel", "k"}, {"fingerprint", "f"}, {"properties", {"p"}}, {"found", 4}}},
          "groups[0].found is 4, expected the number of a finding");
  nlohmann::json twice = a["runs"];
  twice.push_back(twice[0]);
  refuses(a, "/runs", twice, "runs[1] is an object, expected no second 'reference_merge_state");
  nlohmann::json bad = a;
  bad["runs"][0].erase("seconds");
  write("bad.json", bad);
  expect_error(merge({"bad.json"}), kExitUsage, "runs[0].seconds is missing");
}

TEST_F(MergeReports, DoesNotWriteOverWhatItReads) {
  right("1", "a.json");
  const Ran r = assay_program({"merge-reports", path("a.json"), "--json", path("a.json")});
  expect_error(r, kExitUsage, "is read and written");
  EXPECT_TRUE(json("a.json")["complete"]);
}

} // namespace
} // namespace assay
