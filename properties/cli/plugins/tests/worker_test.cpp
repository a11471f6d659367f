// SPDX-License-Identifier: Apache-2.0
// What a worker says is held to what a plugin's table is held to; what starts no worker is an error
// of the harness that says why.
#include <unistd.h>

#include <functional>
#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "properties/call/materialise.h"
#include "properties/case/problem_gen.h"
#include "properties/cli/plugins/worker_loader.h"
#include "properties/cli/session/streams.h"
#include "properties/sut/worker_call.h"
#include "properties/tests/cli_fixture.h"

namespace assay {
namespace {

using nlohmann::json;

json sound_hello() {
  const json arithmetic = {{"mma_block", 0},
                           {"mma_fraction_bits", 0},
                           {"p_format", 0},
                           {"sum_format", 0},
                           {"exponential", 0},
                           {"sum_depth", 64},
                           {"q_abs_error", 0.0},
                           {"exp2_rel_error", 1e-6},
                           {"log2_abs_error", 1e-6},
                           {"rcp_rel_error", 1e-6},
                           {"tanh_abs_error", 1e-6},
                           {"tile_tokens", 16},
                           {"max_parallel_states", 1},
                           {"max_splits", 0},
                           {"merge_stages", 0},
                           {"partial_format", 0},
                           {"stored_merges", 0},
                           {"score_format", 0},
                           {"p_scale_log2", 0},
                           {"accumulator", 0},
                           {"kv_format", 0},
                           {"q_format", 0},
                           {"product_format", 0},
                           {"qk_sum_format", 0},
                           {"output_format", 0},
                           {"rounded_before_scale", 0}};
  const json kernel = {{"name", "one"},         {"family", 0},       {"determinism", 1},
                       {"batch_invariance", 0}, {"nan_contract", 3}, {"arithmetic", arithmetic}};
  return {{"abi", {ASSAY_ABI_MAJOR, ASSAY_ABI_MINOR}}, {"name", "w"}, {"kernels", {kernel}}};
}

CliError refusal_of(const std::string &hello) {
  try {
    read_hello("cmd", hello);
  } catch (const CliError &e) {
    return e;
  }
  return {kExitPass, ""};
}

void expect_refusal(const std::function<void(json &)> &corrupt, const std::string &text,
                    int code = kExitUsage) {
  json hello = sound_hello();
  corrupt(hello);
  const CliError e = refusal_of(hello.dump());
  EXPECT_EQ(e.code, code) << e.what();
  EXPECT_EQ(std::string(e.what()), "worker 'cmd': " + text);
}
void expect_kernel_refusal(const std::function<void(json &)> &corrupt, const std::string &text) {
  expect_refusal([&](json &hello) { corrupt(hello["kernels"][0]); }, text);
}

TEST(WorkerHello, OfASoundWorkerBecomesATable) {
  const auto table = read_hello("cmd", sound_hello().dump());
  ASSERT_EQ(table->plugin.num_kernels, 1);
  const assay_kernel &kernel = table->plugin.kernels[0];
  EXPECT_STREQ(kernel.name, "one");
  EXPECT_EQ(kernel.arithmetic.sum_depth, 64);
  EXPECT_EQ(kernel.arithmetic.exp2_rel_error, 1e-6);
  EXPECT_EQ(kernel.nan_contract, ASSAY_NAN_VALUES | ASSAY_NAN_SCORES);
  EXPECT_EQ(kernel.run(nullptr), ASSAY_UNSUPPORTED); // its functions only refuse
}

TEST(WorkerHello, ThatIsNoneIsRefused) {
  EXPECT_EQ(refusal_of("").code, kExitUsage);
  EXPECT_STREQ(refusal_of("{]").what(), "worker 'cmd': its hello is no JSON");
  EXPECT_STREQ(refusal_of("[1]").what(), "worker 'cmd': is no object");
  EXPECT_STREQ(refusal_of("{}").what(), "worker 'cmd': no abi");
  const std::string sound = sound_hello().dump();
  for (size_t cut = 0; cut < sound.size(); ++cut)
    EXPECT_EQ(refusal_of(sound.substr(0, cut)).code, kExitUsage) << cut;
}

TEST(WorkerHello, OfAnotherVersionIsUnsupported) {
  const auto version = [](json value) { return [=](json &hello) { hello = {{"abi", value}}; }; };
  const std::string serves = ", this program serves 0.13 to " + std::to_string(ASSAY_ABI_MAJOR) +
                             "." + std::to_string(ASSAY_ABI_MINOR);
  // Nothing else of it is read: there is nothing.
  expect_refusal(version({0, 99}), "is of ABI version 0.99" + serves, kExitUnsupported);
  expect_refusal(version({7, ASSAY_ABI_MINOR}),
                 "is of ABI version 7." + std::to_string(ASSAY_ABI_MINOR) + serves,
                 kExitUnsupported);
  for (const json &bad : {json{0}, json{0, -1}, json{0, "6"}, json{0, 1, 2}, json{0, 1e30}})
    expect_refusal(version(bad), "abi is not [major, minor]");
}

TEST(WorkerHello, FieldsAreAllThereAndOfTheirTypes) {
  expect_refusal([](json &h) { h["kernels"] = 3; }, "kernels is '3', expected a list");
  expect_refusal([](json &h) { h["name"] = 3; }, "name is '3', expected a text");
  expect_refusal([](json &h) { h["trust_me"] = true; },
                 "has a field that this program does not know");
  expect_kernel_refusal([](json &k) { k.erase("family"); }, "kernels[0]: no family");
  expect_kernel_refusal([](json &k) { k["family"] = "paged"; },
                        "kernels[0]: family is '\"paged\"', expected an integer of 32 bits");
  expect_kernel_refusal([](json &k) { k["family"] = 1e300; },
                        "kernels[0]: family is '1e+300', expected an integer of 32 bits");
  expect_kernel_refusal([](json &k) { k["arithmetic"].erase("tile_tokens"); },
                        "kernels[0]: arithmetic: no tile_tokens");
  expect_kernel_refusal([](json &k) { k["arithmetic"]["rcp_rel_error"] = nullptr; },
                        "kernels[0]: arithmetic: rcp_rel_error is 'null', expected a number");
  expect_kernel_refusal([](json &k) { k["arithmetic"]["slack"] = 1; },
                        "kernels[0]: arithmetic: has a field that this program does not know");
}

TEST(WorkerHello, ValuesAreThoseOfAPlugin) {
  const std::string at = "kernels[0] 'one': ";
  expect_kernel_refusal([](json &k) { k["family"] = 4; }, at + "family is 4, expected 0 .. 3");
  expect_kernel_refusal([](json &k) { k["name"] = "a/b"; },
                        "kernels[0]: name is not 1 to 100 printable characters without space, "
                        "'/' and '#'");
  for (const char *word : {"nan", "inf"})
    expect_kernel_refusal([=](json &k) { k["arithmetic"]["exp2_rel_error"] = word; },
                          at + "arithmetic.exp2_rel_error is " + word + ", expected 0 to below 1");
  expect_kernel_refusal([](json &k) { k["arithmetic"]["mma_block"] = -1; },
                        at + "arithmetic.mma_block is -1, expected 0 .. 1024");
}

TEST(WorkerReply, IsTakenWholeOrNotAtAll) {
  RunResult result;
  EXPECT_TRUE(read_reply(R"({"reply": 7, "status": 2, "message": "no"})", 7, result));
  EXPECT_EQ(result.status, ASSAY_UNSUPPORTED);
  EXPECT_EQ(result.message, "no");
  EXPECT_TRUE(read_reply(R"({"reply":7,"status":0,"message":"","raised":"E: x"})", 7, result));
  ASSERT_EQ(result.hazards.size(), 1u);
  EXPECT_EQ(result.hazards[0].text, "the kernel raised E: x");
  EXPECT_EQ(result.hazards[0].kind, Hazard::Kind::kRaised);
  EXPECT_EQ(result.hazards[0].name, "E: x");
  for (const char *bad :
       {"", "7", "{}", "\xff\xfe", R"({"reply": 6, "status": 0, "message": ""})",
        R"({"reply": 7, "status": "0", "message": ""})", R"({"reply": 7, "status": 0})",
        R"({"reply": 7, "status": -1, "message": ""})",
        R"({"reply": 7, "status": 4294967296, "message": ""})",
        R"({"reply": 7, "status": 0, "message": "", "raised": 1})"})
    EXPECT_FALSE(read_reply(bad, 7, result)) << bad;
}

// Every byte of every buffer belongs to it alone, guard bands included.
TEST(WorkerCall, BuffersLieApart) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Tensors t = materialise(draw_problem(fuzz_limits(), static_cast<Family>(seed % 4), seed));
    const CallLayout layout(t);
    size_t free = 0;
    for (size_t i = 0; i < t.buffers.size(); ++i) {
      ASSERT_EQ(layout.offsets[i] % 256, t.buffers[i].offset);
      ASSERT_GE(layout.offsets[i], free + 256);
      free = layout.offsets[i] + t.buffers[i].bytes.size() + 256;
    }
    ASSERT_LE(free, layout.bytes);
  }
}

/// Checks the address of every element that a described tensor names.
void expect_elements(const json &tensor, const Tensors &t, const CallLayout &layout, int buffer) {
  ASSERT_TRUE(tensor.is_object());
  const std::string dtype = tensor["dtype"];
  const int64_t size = dtype[0] == 'e' ? 1 : dtype == "fp32" || dtype == "int32" ? 4 : 2;
  int64_t last = tensor["offset"];
  const int64_t first = layout.offsets[buffer];
  for (size_t i = 0; i < tensor["shape"].size(); ++i) {
    if (tensor["shape"][i] == 0) return;
    last += (tensor["shape"][i].get<int64_t>() - 1) * tensor["strides"][i].get<int64_t>() * size;
  }
  EXPECT_GE(last, first);
  EXPECT_LE(last + size, first + static_cast<int64_t>(t.buffers[buffer].bytes.size()));
  EXPECT_EQ(tensor["output"], t.buffers[buffer].output);
}

TEST(WorkerCall, TensorsLieInTheirBuffers) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const Problem p = draw_problem(fuzz_limits(), static_cast<Family>(seed % 4), seed);
    const Tensors t = materialise(p);
    const CallLayout layout(t);
    const json call = describe_call(t, layout);
    expect_elements(call["out"], t, layout, t.o.buffer);
    EXPECT_EQ(call["lse"].is_null(), !p.has_lse);
    for (size_t i = 0; i < t.caches.size(); ++i) {
      if (t.caches[i].pool_pages == 0) continue; // page ids that nothing names
      const json &at = p.family == Family::kPaged ? call : call["levels"][i];
      expect_elements(at["k_cache"], t, layout, t.caches[i].k);
      expect_elements(at["v_cache"], t, layout, t.caches[i].v);
      expect_elements(at["page_table"], t, layout, t.caches[i].table);
    }
  }
}

class WorkerProgram : public Cli {
protected:
  static Ran check_with(const std::string &worker) {
    return assay_program({"check", "--worker", worker, "--patience", "1s"});
  }
  static void expect_no_start(const std::string &worker, const std::string &part) {
    const Ran r = check_with(worker);
    EXPECT_EQ(r.code, kExitHarness) << r.out;
    EXPECT_EQ(r.err.rfind("assay: ", 0), 0u) << r.err;
    EXPECT_NE(r.err.find(part), std::string::npos) << r.err;
  }
};

TEST_F(WorkerProgram, ThatDoesNotStartIsTheHarnessesError) {
  expect_no_start("/nowhere/to/be/found", "No such file or directory");
  expect_no_start("false", "exit(1)");
  expect_no_start("ls /nowhere", "  | ls: cannot access '/nowhere'");
  expect_no_start("sleep 100", "has not returned for 1 s");
  expect_no_start("echo | cat", "not one command");
  expect_no_start("'open", "not one command");
}

TEST_F(WorkerProgram, ThatSpeaksNoJsonIsRefused) {
  const std::string script = file("worker.sh", "printf '\\003\\0\\0\\0\\0\\0\\0\\0abc' >&3; cat\n");
  expect_error(check_with("sh " + script), kExitUsage, "its hello is no JSON");
  // A size beyond all messages: nothing is allocated, and nothing waited for.
  const std::string huge = file("huge.sh", "printf '\\0\\0\\0\\0\\0\\0\\0\\177abc' >&3; sleep 9\n");
  expect_no_start("sh " + huge, "corrupted the channel");
}

// A process ends with the thread that started it: another thread must not be running a case there.
TEST_F(WorkerProgram, OfAThreadIsNotHandedToAnother) {
  const std::string script =
      file("worker.sh", "printf '\\002\\0\\0\\0\\0\\0\\0\\0{}' >&3; sleep 9\n");
  WorkerPool pool({.line = "sh " + script});
  std::promise<void> given, done;
  std::thread other([&] {
    pool.give_back(pool.take());
    given.set_value();
    done.get_future().wait();
  });
  given.get_future().wait();
  auto worker = pool.take();
  const Worker *first = worker.get();
  done.set_value();
  other.join();
  usleep(200'000);
  EXPECT_TRUE(worker->alive());
  pool.give_back(std::move(worker));
  EXPECT_EQ(pool.take().get(), first); // but to the same one again
}

TEST_F(WorkerProgram, AndAPluginExcludeEachOther) {
  EXPECT_EQ(assay_program({"check", "--worker", "x", "--plugin", "y"}).code, kExitUsage);
  EXPECT_EQ(assay_program({"check", "--patience", "1s"}).code, kExitUsage);
  EXPECT_EQ(assay_program({"check", "--worker", "x", "--patience", "soon"}).code, kExitUsage);
}

} // namespace
} // namespace assay
