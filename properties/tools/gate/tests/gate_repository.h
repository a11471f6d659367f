// SPDX-License-Identifier: Apache-2.0
// A repository made up for the gate: a plugin of one kernel, built by one g++ line.
#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include <gtest/gtest.h>

#include "properties/tools/gate/gate.h"
#include "properties/tools/process/process.h"

namespace assay::gate {

namespace fs = std::filesystem;

inline std::string read(const fs::path &path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

inline void replace(std::string &text, const std::string &from, const std::string &to) {
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
}

class GateRepository : public testing::Test {
protected:
  void SetUp() override {
    const auto *test = testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::path(testing::TempDir()) / (std::string("assay_gate_") + test->name());
    fs::remove_all(root_);
    fs::create_directories(root_ / "repo");
    git({"init", "--quiet", "--initial-branch=main"});
    git({"config", "user.name", "t"});
    git({"config", "user.email", "t@example.com"});
    write("merge.cpp", read(ASSAY_GATE_PLUGIN));
    write("README.md", "words\n");
    write("tests/test.cpp", "int main() {}\n");
    write(".gitignore", "/build/\n*.so\n");
    write("assay.toml", "[build]\ncommand = \"g++ -std=c++17 -O1 -shared -fPIC -I" ASSAY_ABI_FOLDER
                        " merge.cpp -o libmerge.so\"\nlibrary = \"libmerge.so\"\n"
                        "[gate]\nbudget = \"60s\"\n");
    commit("base");
  }
  void TearDown() override { fs::remove_all(root_); }

  fs::path repo() const { return root_ / "repo"; }
  void git(std::vector<std::string> words) const {
    words.insert(words.begin(), "git");
    const process::Ended ended = process::run({.words = words,
                                               .folder = repo().string(),
                                               .environment = {},
                                               .log = "",
                                               .waiting = nullptr});
    ASSERT_TRUE(ended.ok()) << ended.err;
  }
  void write(const std::string &path, const std::string &text) const {
    fs::create_directories((repo() / path).parent_path());
    std::ofstream(repo() / path) << text;
  }
  void edit(const std::string &from, const std::string &to) const {
    std::string text = read(repo() / "merge.cpp");
    replace(text, from, to);
    write("merge.cpp", text);
  }
  void commit(const char *what) const {
    git({"add", "--all"});
    git({"commit", "--quiet", "--message", what});
  }

  Options options() const {
    Options out;
    out.program = ASSAY_PROGRAM;
    out.version = "test";
    out.base = "main";
    out.folder = repo().string();
    out.out = (root_ / "out").string();
    out.cases = 20;
    out.duration = [](const std::string &) { return 60.0; };
    return out;
  }
  json gate(const std::vector<std::string> &accept = {}) const {
    Options o = options();
    o.accept = accept;
    return run_gate(o, {.step = [](const std::string &) {}, .waiting = nullptr});
  }

  fs::path root_;
};

} // namespace assay::gate
