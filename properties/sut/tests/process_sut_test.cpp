// SPDX-License-Identifier: Apache-2.0
// A kernel in a process of its own: it gives what it gives here, and nothing it does to its process
// ends the run or passes.
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include <gtest/gtest.h>

#include "kernels/simt/asan.h"
#include "properties/call/materialise.h"
#include "properties/case/codec.h"
#include "properties/case/problem_gen.h"
#include "properties/relate/outcome.h"
#include "properties/sut/wire.h"
#include "properties/tests/reference_kernels.h"

namespace assay {
namespace {

TEST(Wire, EveryFieldOfACaseArrives) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const auto family = static_cast<Family>(seed % 4);
    const Tensors t = materialise(draw_problem(fuzz_limits(), family, seed));
    const wire::Message sent = wire::pack_request(wire::Question::kKeyOrder, 7, t);
    const auto [question, shared_bytes, u] = wire::unpack_request(sent);
    ASSERT_EQ(question, wire::Question::kKeyOrder);
    ASSERT_EQ(shared_bytes, 7u);
    ASSERT_EQ(t.problem, u.problem);
    // Packing is a function of the call, so equal bytes are an equal call.
    ASSERT_EQ(sent, wire::pack_request(question, shared_bytes, u));
    ASSERT_EQ(t.buffers.size(), u.buffers.size());
    for (size_t i = 0; i < t.buffers.size(); ++i)
      ASSERT_EQ(t.buffers[i].bytes.size(), u.buffers[i].bytes.size());
  }
}

TEST(Wire, NoRepliesButSoundOnesAreTaken) {
  Tensors t = materialise(draw_problem(fuzz_limits(), Family::kPaged, 3));
  RunResult result;
  result.message = "message";
  result.hazards = {{.kind = Hazard::Kind::kSignal, .name = "name", .line = 3, .signal = 11}};
  result.violations = {{.buffer = "out", .first = 7}, {.buffer = "lse"}};
  result.counters["mma"] = 7;
  const wire::Message good = wire::pack_reply(result, t);
  RunResult got;
  ASSERT_TRUE(wire::unpack_reply(good, got, t));
  ASSERT_EQ(got.violations.size(), 2u);
  EXPECT_EQ(text_of(got.violations[0]), text_of(result.violations[0]));
  ASSERT_EQ(got.hazards.size(), 1u);
  EXPECT_EQ(symptom_of(got.hazards[0]).where, symptom_of(result.hazards[0]).where);
  EXPECT_EQ(got.counters, result.counters);
  for (size_t cut = 0; cut < good.size(); cut += 1 + cut / 16)
    EXPECT_FALSE(wire::unpack_reply(std::span(good).first(cut), got, t)) << cut;
  for (size_t at = 0; at < std::min<size_t>(good.size(), 64); ++at) {
    wire::Message bad = good;
    bad[at] ^= std::byte{0xff}; // sizes and counts that lie allocate nothing
    wire::unpack_reply(bad, got, t);
  }
  result.hazards[0].kind = static_cast<Hazard::Kind>(200);
  EXPECT_FALSE(wire::unpack_reply(wire::pack_reply(result, t), got, t));
  wire::Message longer = good;
  longer.push_back({});
  EXPECT_FALSE(wire::unpack_reply(longer, got, t));
}

TEST(Wire, NoOrdersOfKeysButSoundOnesAreTaken) {
  assay_key_tile tile{};
  tile.end = 7;
  const wire::Message good = wire::pack_key_order({"", {{tile, tile}, {0, 2, 2}}, {}});
  wire::KeyOrderAnswer got;
  ASSERT_TRUE(wire::unpack_key_order(good, 2, got));
  EXPECT_EQ(got.order.of(0)[1].end, 7);
  EXPECT_TRUE(got.order.of(1).empty());
  EXPECT_FALSE(wire::unpack_key_order(good, 1, got));
  EXPECT_FALSE(wire::unpack_key_order(good, 3, got));
  for (const std::vector<int64_t> &first :
       std::vector<std::vector<int64_t>>{{1, 2, 2}, {0, 3, 2}, {0, 1, 1}, {0, 2, 3}, {}})
    EXPECT_FALSE(
        wire::unpack_key_order(wire::pack_key_order({"", {{tile, tile}, first}, {}}), 2, got));
  ASSERT_TRUE(wire::unpack_key_order(wire::pack_key_order({"refused", {}, {}}), 2, got));
  EXPECT_EQ(got.error, "refused");
  for (size_t cut = 0; cut < good.size(); ++cut)
    EXPECT_FALSE(wire::unpack_key_order(std::span(good).first(cut), 2, got)) << cut;
  for (size_t at = 0; at < good.size(); ++at) {
    wire::Message bad = good;
    bad[at] ^= std::byte{0xff}; // sizes and counts that lie allocate nothing
    wire::unpack_key_order(bad, 2, got);
  }
}

Problem small_case() {
  Problem p = decode({}, fuzz_limits());
  p.seq_lens = {5};
  return p;
}

using RunFunction = assay_status (*)(const void *);
CheckResult result_of(RunFunction run) {
  static assay_kernel kernel; // outlives the sut
  kernel = reference::kernel("reference_v1");
  kernel.run = run;
  auto sut = make_process_sut(kernel);
  const CheckResult first = run_problem(small_case(), *sut).check;
  // The next case has a process again, and meets the same.
  EXPECT_EQ(run_problem(small_case(), *sut).check.message, first.message);
  return first;
}
void expect_finding(RunFunction run, const std::string &part) {
  const CheckResult c = result_of(run);
  EXPECT_TRUE(c.failed());
  EXPECT_NE(c.message.find(part), std::string::npos) << c.message;
}

TEST(Process, AGoodKernelGivesTheSameBits) {
  const assay_kernel &kernel = reference::kernel("reference_v1");
  auto here = make_simt_sut(kernel);
  auto apart = make_process_sut(kernel);
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Problem p = draw_problem(fuzz_limits(), Family::kPaged, seed);
    const Outcome a = run_problem(p, *here), b = run_problem(p, *apart);
    ASSERT_EQ(a.check.kind, b.check.kind) << b.check.message;
    if (a.ok()) {
      ASSERT_TRUE(same_bits(a.after, b.after, "the process").passed());
    }
  }
}

RunResult run_apart(RunFunction run, Problem p) {
  static assay_kernel kernel;
  kernel = reference::kernel("reference_v1");
  kernel.run = run;
  Tensors t = materialise(p);
  return make_process_sut(kernel)->run(t);
}

TEST(Process, AViolationIsListedOnce) {
  Problem p = small_case();
  p.out_pad = 1;
  p.group_size = 2;
  const RunResult r = run_apart(
      [](const void *params) -> assay_status {
        const auto *p = static_cast<const assay_paged_params *>(params);
        static_cast<uint16_t *>(p->out)[p->head_dim] ^= 1; // behind the first row
        return ASSAY_OK;
      },
      p);
  EXPECT_EQ(r.status, ASSAY_OK);
  EXPECT_EQ(r.hazards.size(), 0u);
  ASSERT_EQ(r.violations.size(), 1u);
  EXPECT_EQ(text_of(r.violations[0]),
            "out: 1 bytes outside the live output written, the first at byte 128 of 272");
}

TEST(Process, MemoryGrowsWithItsCases) {
  auto apart = make_process_sut(reference::kernel("reference_v1"));
  for (int keys : {5, 3000, 5, 20'000}) {
    Problem p = small_case();
    p.seq_lens = {keys};
    EXPECT_EQ(run_problem(p, *apart).check.message, "");
  }
}

TEST(Process, LeavingIsAFinding) {
  expect_finding([](const void *) -> assay_status { exit(0); }, "exit(0)");
  expect_finding([](const void *) -> assay_status { _exit(0); }, "exit(0)");
  expect_finding([](const void *) -> assay_status { quick_exit(3); }, "exit(3)");
}

TEST(Process, DyingIsAFinding) {
  expect_finding(
      [](const void *) -> assay_status {
        raise(SIGKILL);
        return ASSAY_OK;
      },
      "signal 9");
  expect_finding(
      [](const void *) -> assay_status {
        raise(SIGTERM);
        return ASSAY_OK;
      },
      "signal 15");
}

#if !ASSAY_ASAN // its own zones stand there
// Beyond the red zones, where no pattern would show it.
TEST(Process, ReachingFarOutsideABufferIsAFinding) {
  expect_finding(
      [](const void *params) -> assay_status {
        const auto *p = static_cast<const assay_paged_params *>(params);
        const volatile char beyond = static_cast<const char *>(p->out)[2048];
        return beyond == 0 ? ASSAY_OK : ASSAY_OK;
      },
      "bytes behind the end of out, which has ");
  expect_finding(
      [](const void *params) -> assay_status {
        const auto *p = static_cast<const assay_paged_params *>(params);
        reinterpret_cast<volatile char *>(p->lse)[-4608] = 0;
        return ASSAY_OK;
      },
      "signal 11 (Segmentation fault) 4608 bytes in front of lse, which has ");
  expect_finding(
      [](const void *params) -> assay_status {
        const auto *p = static_cast<const assay_paged_params *>(params);
        const volatile float slope = *p->alibi_slopes; // null: the case has none
        return slope == 0 ? ASSAY_OK : ASSAY_OK;
      },
      "signal 11 (Segmentation fault) at address 0x0, where nothing is: a null pointer");
}
#endif

TEST(Process, ThrowingIsAFinding) {
  expect_finding([](const void *) -> assay_status { throw std::runtime_error("out of ideas"); },
                 "out of ideas");
  expect_finding([](const void *) -> assay_status { throw 7; }, "threw");
}

TEST(Process, ClosingEveryDescriptorIsAFinding) {
  expect_finding(
      [](const void *) -> assay_status {
        for (int fd = 3; fd < 1024; ++fd)
          close(fd);
        return ASSAY_OK;
      },
      "closed or corrupted the channel");
}

TEST(Process, FloodingTheChannelIsAFinding) {
  expect_finding(
      [](const void *) -> assay_status {
        const char junk[64] = {1, 0, 0, 0, 0, 0, 0, 0, 9};
        for (int fd = 3; fd < 1024; ++fd)
          if (write(fd, junk, sizeof junk) < 0) continue;
        return ASSAY_OK;
      },
      "sound reply");
}

// Its handlers of the end of a program are no kernel's.
TEST(Process, ThatExitsSaysItsOwnCode) {
  expect_finding([](const void *) -> assay_status { _exit(4); }, "exit(4)");
}

assay_status sleeps(const void *) {
  for (;;)
    pause();
}

TEST(Process, PatienceIsGivenAndLostByTheKernelNotByItsThread) {
  assay_kernel kernel = reference::kernel("reference_v1");
  kernel.name = "sleeps";
  kernel.run = sleeps;
  auto first = make_process_sut(kernel, std::chrono::milliseconds(200));
  const CheckResult r = run_problem(small_case(), *first).check;
  EXPECT_TRUE(r.symptom.hung);
  EXPECT_NE(r.message.find("has not returned for 0.2 s"), std::string::npos) << r.message;
  EXPECT_GE(first->seconds_elsewhere(), 0.2);
  // Another thread's process of that kernel, which would have been waited for a minute.
  auto second = make_process_sut(kernel);
  const CheckResult again = run_problem(small_case(), *second).check;
  EXPECT_NE(again.message.find("has not returned for 5 s"), std::string::npos) << again.message;
}

} // namespace
} // namespace assay
