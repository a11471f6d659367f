// SPDX-License-Identifier: Apache-2.0
// A fuzz target ends with its input whatever the code under test has done to the heap.
#include <gtest/gtest.h>

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "properties/tools/process/process.h"

namespace {

namespace fs = std::filesystem;

class CrashGuard : public testing::Test {
protected:
  CrashGuard() {
    char name[] = "/tmp/assay_crash_guard_XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~CrashGuard() override { fs::remove_all(folder_); }

  assay::process::Ended run(const std::string &program, const std::string &input,
                            const char *seconds) {
    std::ofstream(folder_ / "input", std::ios::binary) << input;
    return assay::process::run({.words = {"timeout", "-s", "KILL", seconds, program, "-timeout=300",
                                          "-artifact_prefix=" + (folder_ / "left-").string(),
                                          (folder_ / "input").string()}});
  }

  /// The one artifact, or nothing.
  std::string left() const {
    std::string found;
    for (const auto &entry : fs::directory_iterator(folder_))
      if (entry.path().filename().string().starts_with("left-")) {
        std::ifstream in(entry.path(), std::ios::binary);
        found += std::string(std::istreambuf_iterator<char>(in), {});
      }
    return found;
  }

  fs::path folder_;
};

TEST_F(CrashGuard, ACorruptedHeapEndsWithTheInput) {
  const auto ended = run(ASSAY_CRASH_IN_HEAP, "heap", "600");
  EXPECT_EQ(ended.code, 77) << ended.err;
  EXPECT_EQ(left(), "heap") << ended.err;
  EXPECT_NE(ended.err.find("Test unit written to " + (folder_ / "left-crash-").string()),
            std::string::npos)
      << ended.err;
}

// The control: this is what the guard is for.
TEST_F(CrashGuard, WithoutItNothingIsLeft) {
  const auto ended = run(ASSAY_CRASH_UNGUARDED, "heap", "8");
  EXPECT_EQ(ended.code, 128 + 9) << ended.err; // it hangs, and is not even asked to end
  EXPECT_EQ(left(), "") << ended.err;
}

TEST_F(CrashGuard, OtherReportsAreLibFuzzersOwn) {
  const auto ended = run(ASSAY_CRASH_IN_HEAP, "a", "600");
  EXPECT_EQ(ended.code, 77) << ended.err;
  EXPECT_NE(ended.err.find("VIOLATION: found by the check"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("deadly signal"), std::string::npos) << ended.err;
  EXPECT_EQ(ended.err.find("does not end"), std::string::npos) << ended.err;
}

} // namespace
