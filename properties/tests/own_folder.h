// SPDX-License-Identifier: Apache-2.0
// Files of a test.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

namespace assay {

namespace fs = std::filesystem;

inline std::string read_text(const fs::path &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// One place of a text; the test fails where it is not.
inline void replace_once(std::string &text, const std::string &from, const std::string &to) {
  const size_t at = text.find(from);
  ASSERT_NE(at, text.npos) << "no " << from;
  text.replace(at, from.size(), to);
}

/// In a folder of its own, which is the current one meanwhile.
class InOwnFolder : public testing::Test {
protected:
  void SetUp() override {
    const auto *test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) /
              (std::string("assay_") + test->test_suite_name() + "_" + test->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    fs::current_path(folder_);
  }
  void TearDown() override {
    fs::current_path(before_);
    fs::remove_all(folder_);
  }
  /// Writes a program and returns its path.
  std::string script(const std::string &name, const std::string &text) const {
    std::ofstream(folder_ / name) << text;
    fs::permissions(folder_ / name, fs::perms::owner_all);
    return (folder_ / name).string();
  }

  fs::path before_ = fs::current_path(), folder_;
};

} // namespace assay
