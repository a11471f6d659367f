// SPDX-License-Identifier: Apache-2.0
#include "properties/sut/forker.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include <gtest/gtest.h>

#include "properties/call/materialise.h"
#include "properties/case/problem_gen.h"
#include "properties/sut/sut.h"
#include "properties/tests/reference_kernels.h"

namespace assay {
namespace {

int expected = 1;

struct Told {
  int expected, parent;
};

void tell(const ForkRequest &request) {
  const Told told{expected, getppid()};
  _exit(write(request.channel, &told, sizeof told) == sizeof told ? 7 : 8);
}

class ForkerTest : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0);
    forker_ = Forker::start(tell);
    ASSERT_NE(forker_, nullptr);
  }
  void TearDown() override {
    close(ends_[0]);
    close(ends_[1]);
  }
  ForkRequest request() const { return {reference::plugin().kernels[0], ends_[1], 0, 0}; }

  int ends_[2] = {-1, -1};
  std::unique_ptr<Forker> forker_;
};

// What the harness has made since the forker was started is not in the memory of a kernel.
TEST_F(ForkerTest, ProcessesKnowNothingNewAndAreOurChildren) {
  expected = 2;
  for (int i = 0; i < 3; ++i) {
    const pid_t process = forker_->fork(request());
    ASSERT_GT(process, 0);
    Told told{};
    ASSERT_EQ(read(ends_[0], &told, sizeof told), static_cast<ssize_t>(sizeof told));
    EXPECT_EQ(told.expected, 1);
    EXPECT_EQ(told.parent, getpid());
    int status = 0;
    ASSERT_EQ(waitpid(process, &status, 0), process);
    EXPECT_EQ(WEXITSTATUS(status), 7);
  }
  expected = 1;
}

TEST_F(ForkerTest, SaysSoWhereThereIsNoProcess) {
  EXPECT_EQ(forker_->fork({reference::plugin().kernels[0], -1, -1, -1}), -1);
}

// A kernel that has ended its process runs in a new one, which is the same but for the case.
TEST(ForkedKernels, EndAndAreStartedAgain) {
  const auto forker = start_forker();
  assay_kernel kernel = reference::plugin().kernels[0];
  const auto run = [&](auto body) {
    kernel.run = body;
    const auto sut = make_process_sut(kernel, kFirstPatience, forker.get());
    Tensors t = materialise(decode_family({}, fuzz_limits(), Family::kPaged));
    RunResult first = sut->run(t);
    sut->forget_earlier_calls();
    return std::pair(first, sut->run(t));
  };
  const auto [first, second] = run([](const void *) -> assay_status {
    static int calls = 0;
    return ++calls == 1 ? ASSAY_OK : ASSAY_INTERNAL;
  });
  EXPECT_EQ(first.status, ASSAY_OK);
  EXPECT_EQ(second.status, ASSAY_OK);
  expected = 2; // no kernel sees what the harness has made since
  const auto [unaware, still] =
      run([](const void *) -> assay_status { return expected == 1 ? ASSAY_OK : ASSAY_INTERNAL; });
  expected = 1;
  EXPECT_EQ(unaware.status, ASSAY_OK);
  EXPECT_EQ(still.status, ASSAY_OK);
  const auto [aborted, again] = run([](const void *) -> assay_status { abort(); });
  for (const RunResult &result : {aborted, again}) {
    ASSERT_EQ(result.hazards.size(), 1u);
    EXPECT_EQ(result.hazards[0].signal, SIGABRT);
  }
}

} // namespace
} // namespace assay
