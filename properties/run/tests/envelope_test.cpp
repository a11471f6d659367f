// SPDX-License-Identifier: Apache-2.0
// What a kernel takes is learnt from its answers, and cases are drawn there.
#include "properties/case/envelope.h"

#include <algorithm>
#include <cstring>
#include <set>

#include <gtest/gtest.h>

#include "properties/case/codec.h"
#include "properties/case/problem_gen.h"
#include "properties/run/probe.h"
#include "properties/run/reached.h"
#include "properties/run/requirements.h"
#include "properties/run/runner.h"
#include "properties/tests/cli_fixture.h"

namespace assay {
namespace {

assay_status one_shape(const void *params) {
  const auto &p = *static_cast<const assay_paged_params *>(params);
  const bool taken = p.dtype == ASSAY_FP16 && p.kv_dtype == ASSAY_FP16 && p.head_dim == 128 &&
                     p.kv.page_size == 32 && p.num_qo_heads == 4 * p.num_kv_heads && p.q_len == 1 &&
                     p.window_left < 0 && p.logits_soft_cap == 0 && !p.alibi_slopes && !p.sinks &&
                     !p.qo_indptr && p.dcp_world_size == 0;
  return taken ? ASSAY_OK : ASSAY_UNSUPPORTED;
}
assay_kernel narrow_kernel() {
  assay_kernel k = reference::kernel("reference_v1");
  k.supports = one_shape;
  k.last_error = [] { return "one shape only"; };
  return k;
}

TEST(Envelope, IsLearntFromAnswers) {
  const assay_kernel k = narrow_kernel();
  const Envelope e = probe_envelope(k, false);
  EXPECT_EQ(e.fields.at("dtype").taken, std::vector{int(Dtype::kFp16)});
  EXPECT_EQ(e.fields.at("head_dim").taken, std::vector{128});
  EXPECT_EQ(e.fields.at("page_size").taken, std::vector{32});
  EXPECT_EQ(e.fields.at("group_size").taken, std::vector{4});
  EXPECT_EQ(e.fields.at("q_len").taken, std::vector{1});
  EXPECT_EQ(e.fields.at("window_left").taken, std::vector{-1});
  EXPECT_EQ(e.fields.at("page_size").reasons[0], "one shape only");
  EXPECT_EQ(e.fields.count("lse_base"), 0u);
  EXPECT_EQ(e.fields.count("num_kv_heads"), 0u);
}

bool is_one_model(const assay_paged_params &p) {
  return p.dtype == ASSAY_BF16 && p.kv_dtype == ASSAY_BF16 && p.head_dim == 128 &&
         p.kv.page_size == 16 && p.num_kv_heads == 8 && p.num_qo_heads == 64 && p.q_len == 1;
}

// Such a kernel fixes the number of heads beside all else, and may say the same of everything.
TEST(Envelope, OfAKernelForOneModelIsFound) {
  assay_kernel k = reference::kernel("reference_v1");
  k.last_error = [] { return "one model only"; };
  k.supports = [](const void *params) -> assay_status {
    const auto &p = *static_cast<const assay_paged_params *>(params);
    return is_one_model(p) ? ASSAY_OK : ASSAY_UNSUPPORTED;
  };
  const Envelope e = probe_envelope(k, false);
  EXPECT_EQ(e.fields.at("num_kv_heads").taken, std::vector{8});
  EXPECT_EQ(e.fields.at("group_size").taken, std::vector{8});
  // The calls of a sequence are small, and keep the heads that such a kernel needs.
  RunnerOptions options;
  options.cases = 2;
  options.threads = 1;
  options.envelopes[&k] = e;
  EXPECT_GE(run_properties({&k}, {find_property("call_sequence")}, options, nullptr).cases(), 2);
}

// Each kv head has slots of its own: more of them must not cut the keys that requests share.
TEST(Envelope, MoreHeadsKeepSharedKeys) {
  assay_kernel k = reference::kernel("reference_v1");
  k.supports = [](const void *params) -> assay_status {
    const auto &p = *static_cast<const assay_paged_params *>(params);
    return p.num_kv_heads == 8 ? ASSAY_OK : ASSAY_UNSUPPORTED;
  };
  const Envelope e = probe_envelope(k, false);
  int trees = 0, kept = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    const Problem drawn = draw_problem(check_limits(), Family::kPaged, seed);
    if (drawn.num_splits == 0 || shared_keys(drawn) < 64) continue;
    ++trees;
    const Problem fitted = e.fit(drawn, check_limits());
    EXPECT_EQ(fitted.num_kv_heads, 8);
    kept += shared_keys(fitted) >= 64 ? 1 : 0;
  }
  EXPECT_GE(trees, 200);
  // Limits of rows and pages cut one in nine; with the slots of one head 8 of 288 are left.
  EXPECT_GE(kept, trees * 4 / 5);
}

// One shape alone, of which it says nothing.
TEST(Envelope, OfASilentKernelIsFoundFromTheValuesThatAreKnown) {
  assay_kernel k = reference::kernel("reference_v1");
  k.last_error = [] { return "no"; };
  k.supports = [](const void *params) -> assay_status {
    const auto &p = *static_cast<const assay_paged_params *>(params);
    const bool model = p.num_kv_heads == 8 && p.num_qo_heads == 32 && p.kv.page_size == 16;
    return model && p.batch == 24 && !p.lse && p.window_left < 0 ? ASSAY_OK : ASSAY_UNSUPPORTED;
  };
  EXPECT_TRUE(probe_envelope(k, false).fields.empty());
  const Envelope e = probe_envelope(k, false, {{"batch", 24}, {"num_kv_heads", 8}, {"no_lse", 1}});
  EXPECT_EQ(e.fields.at("batch").taken, std::vector{24});
  EXPECT_EQ(e.fields.at("no_lse").taken, std::vector{1});
  EXPECT_EQ(e.fields.at("group_size").taken, std::vector{4});
  EXPECT_EQ(e.fields.at("page_size").taken, std::vector{16});
  EXPECT_EQ(e.fields.at("window_left").taken, std::vector{-1});
}

// One that needs what few calls have, and says what.
TEST(Envelope, IsFoundByTheWordsOfAKernelThatNeedsMore) {
  static const char *said = "";
  assay_kernel k = reference::kernel("reference_v1");
  k.last_error = [] { return said; };
  k.supports = [](const void *params) -> assay_status {
    const auto &p = *static_cast<const assay_paged_params *>(params);
    said = !p.sinks                   ? "sinks are needed"
           : p.window_left < 0        ? "a window is needed"
           : p.head_dim != 64         ? "head_dim is not 64"
           : p.kv.page_size != 32     ? "page_size is not 32"
           : p.num_kv_heads != 8      ? "8 kv heads are needed"
           : p.num_qo_heads != 64     ? "64 heads are needed"
           : p.kv_dtype != ASSAY_E4M3 ? "an fp8 cache is needed"
           : p.dtype != ASSAY_BF16    ? "bf16 is needed"
                                      : "";
    return *said == 0 ? ASSAY_OK : ASSAY_UNSUPPORTED;
  };
  const Envelope e = probe_envelope(k, false);
  EXPECT_EQ(e.fields.at("num_kv_heads").taken, std::vector{8});
  EXPECT_EQ(e.fields.at("page_size").taken, std::vector{32});
  EXPECT_EQ(e.fields.at("window_left").taken, std::vector{15});
}

// Each side of a range has its own reason, and cases are moved to either end.
TEST(Envelope, SaysWhichLengthsAreRefusedAndWhy) {
  static const char *said = "";
  assay_kernel k = reference::kernel("reference_v1");
  k.supports = [](const void *params) -> assay_status {
    const auto &p = *static_cast<const assay_paged_params *>(params);
    said = "";
    for (int r = 0; r < p.batch; ++r)
      if (p.kv.seq_lens[r] == 0) said = "no empty requests";
    if (p.kv.max_pages * p.kv.page_size > 300) said = "too long";
    return *said == 0 ? ASSAY_OK : ASSAY_UNSUPPORTED;
  };
  k.last_error = [] { return said; };
  const Envelope e = probe_envelope(k, false);
  const auto words = [&](Family family, const Envelope &of) {
    for (const ShapeField &field : shape_fields(family))
      if (field.name == "seq_lens") return describe_field(field, of.fields.at("seq_lens"));
    return std::string();
  };
  EXPECT_EQ(words(Family::kPaged, e),
            "seq_lens       1 .. 288; not less (no empty requests); not more (too long)");
  int empty = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Problem drawn = draw_problem(check_limits(), Family::kPaged, seed);
    for (int len : drawn.seq_lens)
      empty += len == 0;
    for (int len : e.fit(drawn, check_limits()).seq_lens)
      EXPECT_TRUE(len >= 1 && len <= 288) << len;
  }
  EXPECT_GT(empty, 0);
  Envelope short_ones = e;
  short_ones.fields["seq_lens"] = {{1, 0, 16}, {64}, {"too long"}};
  EXPECT_EQ(words(Family::kPaged, short_ones), "seq_lens       up to 16; not more (too long)");
}

// What a kernel takes bounds its draws, and nothing that we chose.
TEST(Envelope, LargeSizesAreDrawnUpToWhatTheKernelTakes) {
  assay_kernel k = reference::kernel("reference_v1");
  k.supports = [](const void *params) -> assay_status {
    const auto &p = *static_cast<const assay_paged_params *>(params);
    return p.batch <= 100 && p.num_kv_heads % 2 == 0 ? ASSAY_OK : ASSAY_UNSUPPORTED;
  };
  k.last_error = [] { return "up to 100 requests"; };
  const Envelope e = probe_envelope(k, false);
  const auto fitted = [&](int batch) {
    Problem p = decode_family({}, full_limits(), Family::kPaged);
    p.batch = batch;
    p.seq_lens.assign(batch, 1);
    p.group_size = 40;
    p.page_size = 528;
    return e.fit(p, full_limits());
  };
  EXPECT_EQ(fitted(64).batch, 64);
  EXPECT_EQ(fitted(37).batch, 37) << "between two that were asked about";
  EXPECT_EQ(fitted(257).batch, 100);
  EXPECT_EQ(fitted(9).group_size, 40);
  EXPECT_EQ(fitted(9).page_size, 528);
  EXPECT_EQ(fitted(9).num_kv_heads % 2, 0);
  for (const ShapeField &field : shape_fields(Family::kPaged))
    if (field.name == "batch") {
      EXPECT_EQ(describe_field(field, e.fields.at("batch")),
                "batch          0 .. 100; not 112 .. 1024 (up to 100 requests)");
    }
}

// A run that cut its draws proves nothing about what lies beyond, and says so.
TEST(Envelope, SizesThatAreTakenAndNeverAskedAreNamed) {
  Problem p = decode_family({}, full_limits(), Family::kPaged);
  ReachedSizes asked;
  asked.add(p);
  EXPECT_EQ(never_asked(Family::kPaged, asked, nullptr)[0],
            "it takes batch 64 and was never asked with more than 1");
  p.batch = 64;
  p.seq_lens.assign(64, 1);
  asked.add(p);
  for (const std::string &gap : never_asked(Family::kPaged, asked, nullptr))
    EXPECT_EQ(gap.find("batch"), std::string::npos) << gap;
  Envelope narrow;
  narrow.fields["page_size"] = {{1, 16, 64}, {128, 256}, {"64 at most", "64 at most"}};
  const auto names_pages = [&](const Envelope *envelope) {
    int count = 0;
    for (const std::string &gap : never_asked(Family::kPaged, asked, envelope))
      count += gap.find("page_size") != std::string::npos;
    return count;
  };
  EXPECT_EQ(names_pages(nullptr), 1);
  EXPECT_EQ(names_pages(&narrow), 0);
  EXPECT_EQ(why_no_larger(Family::kPaged, "page_size", 64, &narrow),
            "the kernel refuses 128 (64 at most)");
}

TEST(Envelope, OfAKernelThatTakesEverythingHasNoFields) {
  for (const char *name : {"reference_v1", "reference_cascade", "reference_merge_states"})
    EXPECT_TRUE(probe_envelope(reference::kernel(name), false).fields.empty()) << name;
}

/// Batches that a kernel was asked about.
std::set<int> asked_batches;

// A size that tells nothing is asked about where another is refused, and only there.
TEST(Envelope, EverySizeIsAskedAboutWhereOneIsRefused) {
  for (bool refuses : {false, true}) {
    asked_batches.clear();
    assay_kernel k = reference::kernel("reference_v1");
    k.last_error = [] { return "no batch of 3"; };
    k.supports = [](const void *params) -> assay_status {
      asked_batches.insert(static_cast<const assay_paged_params *>(params)->batch);
      return ASSAY_OK;
    };
    if (refuses)
      k.supports = [](const void *params) -> assay_status {
        const int batch = static_cast<const assay_paged_params *>(params)->batch;
        asked_batches.insert(batch);
        return batch == 3 || batch == 100 ? ASSAY_UNSUPPORTED : ASSAY_OK;
      };
    const Envelope e = probe_envelope(k, false);
    EXPECT_TRUE(asked_batches.contains(9) && asked_batches.contains(129));
    EXPECT_EQ(asked_batches.contains(100), refuses);
    EXPECT_EQ(e.fields.contains("batch"), refuses);
    if (refuses) EXPECT_EQ(e.fields.at("batch").refused, (std::vector{3, 100}));
  }
}

TEST(Envelope, CasesAreMovedIntoIt) {
  const assay_kernel k = narrow_kernel();
  const Envelope e = probe_envelope(k, false);
  int keys = 0;
  for (uint64_t seed = 0; seed < 300; ++seed)
    for (const Limits &limits : {fuzz_limits(), check_limits()}) {
      const Problem p = e.fit(draw_problem(limits, Family::kPaged, seed), limits);
      EXPECT_EQ(problem_error(p, full_limits()), "");
      EXPECT_EQ(p.dtype, Dtype::kFp16);
      EXPECT_EQ(p.head_dim, 128);
      EXPECT_EQ(p.page_size, 32);
      EXPECT_EQ(p.group_size, 4);
      EXPECT_FALSE(has_features(p));
      for (int len : p.seq_lens)
        keys += len;
      EXPECT_EQ(e.fit(p, limits), p) << "once is enough";
    }
  EXPECT_GT(keys, 600 * 10);
}

TEST(Envelope, ClassesOutsideAreReportedAndNotRequired) {
  static assay_kernel k = narrow_kernel();
  RunnerOptions options;
  options.cases = 8;
  options.threads = 1;
  options.envelopes[&k] = probe_envelope(k, false);
  std::vector<const Property *> all;
  for (const Property &p : properties())
    all.push_back(&p);
  const RunSummary summary = run_properties({&k}, all, options, nullptr);
  EXPECT_FALSE(summary.incomplete());
  EXPECT_EQ(summary.findings(), 0);
  for (const PropertyRun &run : summary.runs) {
    EXPECT_TRUE(run.missing.empty()) << run.property->name;
    if (run.cases == 0) continue;
    EXPECT_LE(run.unsupported, run.cases) << run.property->name;
    for (const char *inside : {"partial_last_page", "tile_edge", "ragged", "gqa_heads"})
      EXPECT_TRUE(run.classes.count(inside)) << run.property->name << " " << inside;
    for (const char *outside : {"page_1", "fp8"})
      EXPECT_EQ(run.classes.count(outside), 0u) << run.property->name;
  }
}

TEST(Envelope, AKernelThatRefusesEverythingProvesNothing) {
  static assay_kernel k = narrow_kernel();
  k.supports = [](const void *) -> assay_status { return ASSAY_UNSUPPORTED; };
  RunnerOptions options;
  options.cases = 2;
  options.threads = 1;
  options.envelopes[&k] = probe_envelope(k, false);
  const auto summary = run_properties({&k}, {find_property("run_to_run")}, options, nullptr);
  EXPECT_EQ(summary.cases(), 0);
  EXPECT_TRUE(summary.incomplete());
}

TEST_F(Cli, OnlyNarrowsByHand) {
  const auto check = [&](const std::string &only) {
    return assay_program({"check", "--kernel", "reference_v1", "--property", "within_budget",
                          "--cases", "3", "--only", only, "--json", path("out.json")});
  };
  const Ran r = check("dtype=bf16,head_dim=128,page_size=16/32");
  EXPECT_EQ(r.code, kExitPass) << r.out << r.err;
  EXPECT_NE(r.out.find("head_dim       128; not 64, 256 (--only)"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("not covered"), std::string::npos) << r.out;
  const auto j = json("out.json")["kernels"][0];
  EXPECT_EQ(j["envelope"]["dtype"]["taken"][0], "bf16");
  const auto classes = j["not_covered"];
  EXPECT_NE(std::find(classes.begin(), classes.end(), "fp16"), classes.end());
  expect_error(check("colour=red"), kExitUsage, "--only colour: no field of these kernels' cases");
  expect_error(check("dtype=int4"), kExitUsage, "--only dtype=int4: not one of bf16, fp16");
  expect_error(check("dtype"), kExitUsage, "--only 'dtype': not FIELD=VALUE");
}

// A declaration that lets anything through proves nothing.
TEST_F(Cli, DeclaredAwayIsIncomplete) {
  assay_kernel k = reference::kernel("reference_v1");
  k.arithmetic.exp2_rel_error = 0.9; // and a rescaling with every key: a sum beyond fp16
  k.arithmetic.tile_tokens = 1;
  k.arithmetic.sum_format = ASSAY_FORMAT_FP16;
  const Ran r = program(one_kernel(k), {"check", "--property", "within_budget", "--cases", "6"});
  EXPECT_EQ(r.code, kExitHarness) << r.out << r.err;
  EXPECT_NE(r.out.find("of its outputs have no claim"), std::string::npos) << r.out;
}

} // namespace
} // namespace assay
