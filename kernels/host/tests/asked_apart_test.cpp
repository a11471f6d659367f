// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/asked_apart.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>

namespace assay {
namespace {

constexpr std::chrono::milliseconds kLong{60'000}, kShort{50};

int asked = 0; // in the process that looks at it
pid_t here = 0;

int answer() { return ++asked, 90; }
/// As a driver that the process of the test has set up: it answers there alone.
int answer_here() { return ++asked, getpid() == here ? 80 : 0; }
int no_answer() { return ++asked, 0; }
int death() { return ++asked, abort(), 90; }
int sleep_on() { return ++asked, pause(), 90; }

class AskedApart : public testing::Test {
protected:
  void SetUp() override {
    asked = 0;
    here = getpid();
  }
};

TEST_F(AskedApart, LeavesNothingHere) {
  EXPECT_EQ(asked_apart(&answer, kLong), 90);
  EXPECT_EQ(asked_apart_or_here(&answer, kLong), 90);
  EXPECT_EQ(asked, 0);
}

TEST_F(AskedApart, AsksHereWhereTheOtherProcessHasNoAnswer) {
  EXPECT_EQ(asked_apart(&answer_here, kLong), 0);
  EXPECT_EQ(asked_apart_or_here(&answer_here, kLong), 80);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(asked_apart_or_here(&no_answer, kLong), 0);
  EXPECT_EQ(asked, 2);
}

TEST_F(AskedApart, AProcessThatEndsOrHangsIsNotAskedAgain) {
  EXPECT_EQ(asked_apart(&death, kLong), std::nullopt);
  EXPECT_EQ(asked_apart_or_here(&death, kLong), 0);
  EXPECT_EQ(asked_apart(&sleep_on, kShort), std::nullopt);
  EXPECT_EQ(asked_apart_or_here(&sleep_on, kShort), 0);
  EXPECT_EQ(asked, 0);
}

} // namespace
} // namespace assay
