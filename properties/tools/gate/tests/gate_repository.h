// SPDX-License-Identifier: Apache-2.0
// A repository made up for the gate: a plugin of one kernel, built by one g++ line.
#pragma once

#include "properties/tests/own_folder.h"
#include "properties/tools/gate/gate.h"
#include "properties/tools/process/process.h"

namespace assay::gate {

class GateRepository : public InOwnFolder {
protected:
  void SetUp() override {
    InOwnFolder::SetUp();
    fs::create_directories(repo());
    git({"init", "--quiet", "--initial-branch=main"});
    git({"config", "user.name", "t"});
    git({"config", "user.email", "t@example.com"});
    write("merge.cpp", read_text(ASSAY_GATE_PLUGIN));
    write("README.md", "words\n");
    write("tests/test.cpp", "int main() {}\n");
    write(".gitignore", "/build/\n*.so\n");
    write("assay.toml", "[build]\ncommand = \"g++ -std=c++17 -O1 -shared -fPIC -I" ASSAY_ABI_FOLDER
                        " merge.cpp -o libmerge.so\"\nlibrary = \"libmerge.so\"\n"
                        "[gate]\nbudget = \"60s\"\n");
    commit("base");
  }

  fs::path repo() const { return folder_ / "repo"; }
  void git(std::vector<std::string> words) const {
    words.insert(words.begin(), "git");
    const process::Ended ended = process::run({.words = words, .folder = repo().string()});
    ASSERT_TRUE(ended.ok()) << ended.err;
  }
  void write(const std::string &path, const std::string &text) const {
    fs::create_directories((repo() / path).parent_path());
    std::ofstream(repo() / path) << text;
  }
  void edit(const std::string &from, const std::string &to) const {
    std::string text = read_text(repo() / "merge.cpp");
    replace_once(text, from, to);
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
    out.out = (folder_ / "out").string();
    out.cases = 20;
    out.duration = [](const std::string &) { return 60.0; };
    return out;
  }
  json gate(const std::vector<std::string> &accept = {}) const {
    Options o = options();
    o.accept = accept;
    return run_gate(o, {.step = [](const std::string &) {}, .waiting = nullptr});
  }
};

} // namespace assay::gate
