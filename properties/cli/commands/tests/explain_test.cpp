// SPDX-License-Identifier: Apache-2.0
// `assay explain`: what each field of a declaration costs, and what requests share.
#include "properties/case/case_text.h"
#include "properties/cli/plugins/declared_values.h"
#include "properties/relate/shared_work.h"
#include "properties/tests/cli_fixture.h"

namespace assay {
namespace {

const nlohmann::json &field(const nlohmann::json &declaration, const std::string &name) {
  for (const auto &row : declaration["fields"])
    if (row["name"] == name) return row;
  ADD_FAILURE() << "no field " << name;
  return declaration;
}

TEST_F(Cli, ExplainDeclarationSaysWhatEachFieldCosts) {
  Ran r = assay_program({"explain", "--declaration", "--json", path("out.json")});
  ASSERT_EQ(r.code, kExitPass) << r.err;
  const auto j = json("out.json");
  ASSERT_EQ(j["declarations"].size(), 5u);
  for (const auto &d : j["declarations"]) {
    const auto name = d["kernel"].get<std::string>();
    SCOPED_TRACE(name);
    EXPECT_NE(r.out.find(name + ": bound "), std::string::npos) << r.out;
    EXPECT_GT(d["outputs"], 0);
    EXPECT_EQ(field(d, "exp2_rel_error")["declared"], "2^-23");
    EXPECT_GT(field(d, "exp2_rel_error")["terms"]["weights"], 0);
    EXPECT_GT(field(d, "log2_abs_error")["lse"], 0);
    EXPECT_GT(d["rest"]["terms"]["output_rounding"], 0.5);
    EXPECT_LT(d["rest"]["o"], 1);
  }
  // Splits cost the second kernel more than anything else; the first one has none.
  EXPECT_EQ(field(j["declarations"][0], "max_splits, merge_stages")["o"], 0);
  EXPECT_GT(field(j["declarations"][1], "max_splits, merge_stages")["o"], 0.05);
  EXPECT_NE(r.out.find("of no cost here: p_format (fp32), "), std::string::npos) << r.out;
}

// A wider declaration has a wider bound, and the field that is wider says so.
TEST_F(Cli, ExplainDeclarationPointsAtTheWideField) {
  assay_kernel wide = reference::kernel("reference_v1");
  const auto explained = [&] {
    const Ran r =
        program(one_kernel(wide), {"explain", "--declaration", "--json", path("out.json")});
    EXPECT_EQ(r.code, kExitPass) << r.err;
    return json("out.json")["declarations"][0];
  };
  const auto tight = explained();
  wide.arithmetic.exp2_rel_error = 0x1p-8;
  const auto loose = explained();
  EXPECT_GT(loose["bound"], 2 * tight["bound"].get<double>());
  EXPECT_GT(field(loose, "exp2_rel_error")["o"], 0.5);
  EXPECT_LT(field(tight, "exp2_rel_error")["o"], 0.1);
  EXPECT_EQ(field(loose, "exp2_rel_error")["declared"], "2^-8");
}

TEST_F(Cli, ExplainDeclarationTakesACase) {
  const std::string merge = file("merge.case", "assay-case 1\nkernel = reference_merge_state\n"
                                               "family = merge_state\nend\n");
  Ran r = assay_program({"explain", "--declaration", merge, "--json", path("out.json")});
  EXPECT_EQ(r.code, kExitPass) << r.err;
  const auto j = json("out.json")["declarations"];
  ASSERT_EQ(j.size(), 1u);
  EXPECT_EQ(j[0]["kernel"], "reference_merge_state");
  EXPECT_NE(j[0]["case"].get<std::string>().find("family = merge_state"), std::string::npos);
  expect_error(assay_program({"explain", "--declaration", merge, "--kernel", "reference_v1"}),
               kExitUsage, "merge.case: a merge_state case does not fit kernel reference_v1");
}

// A case without a claim explains nothing.
TEST_F(Cli, ExplainDeclarationOfAnEmptyCaseProvesNothing) {
  const std::string empty = file("empty.case", "assay-case 1\nfamily = paged\nbatch = 0\nend\n");
  EXPECT_EQ(assay_program({"explain", "--declaration", empty}).code, kExitHarness);
}

TEST_F(Cli, ExplainDeclarationRefusesByName) {
  expect_error(assay_program({"explain"}), kExitUsage,
               "explain: files is missing: a .case, or --declaration");
  expect_error(assay_program({"explain", "--declaration", "--kernel", "v9"}), kExitUsage,
               "unknown kernel 'v9'; known: reference_v1, ");
  expect_error(assay_program({"explain", "--declaration", "--target", "tpu"}), kExitUsage,
               "unknown target 'tpu'");
  expect_error(assay_program({"explain", "--declaration", "--target", "cuda"}), kExitUnsupported,
               "has no kernels for target cuda");
  expect_error(assay_program({"explain", "--declaration", path("absent.case")}), kExitUsage,
               "absent.case: cannot read");
}

TEST(DeclaredValues, AreWrittenAsTheyAreDeclared) {
  assay_arithmetic a{};
  a.mma_block = 8;
  a.mma_fraction_bits = 25;
  a.p_format = ASSAY_FORMAT_CALL;
  a.sum_format = ASSAY_FORMAT_BF16;
  a.exponential = ASSAY_EXP_BASE2;
  a.exp2_rel_error = 0x1p-22;
  a.tanh_abs_error = 3e-7;
  EXPECT_EQ(declared_value(a, "mma_block, mma_fraction_bits"), "8, 25");
  EXPECT_EQ(declared_value(a, "p_format"), "call");
  EXPECT_EQ(declared_value(a, "sum_format"), "bf16");
  EXPECT_EQ(declared_value(a, "exponential"), "base2");
  EXPECT_EQ(declared_value(a, "exp2_rel_error"), "2^-22");
  EXPECT_EQ(declared_value(a, "tanh_abs_error"), "3e-07");
  EXPECT_EQ(declared_value(a, "rcp_rel_error"), "0");
  EXPECT_THROW(declared_value(a, "speed"), std::logic_error);
}

// What a kernel computes once for several requests, read off its order of keys.
constexpr int kPage = 16;

/// Says of each request that its splits end at `ends_of(kv, request)`.
template <class EndsOf>
assay_status order(const void *params, assay_key_tile *tiles, int64_t capacity, int64_t *first,
                   EndsOf ends_of) {
  const assay_paged_kv &kv = static_cast<const assay_paged_params *>(params)->kv;
  first[0] = 0;
  for (int32_t request = 0; request < kv.rows; ++request) {
    int64_t at = first[request];
    int32_t begin = 0;
    for (int32_t split = 0; const int32_t end : ends_of(kv, request)) {
      if (at < capacity) tiles[at] = {0, split, 0, begin, end, 1};
      ++at, ++split, begin = end;
    }
    first[request + 1] = at;
  }
  return ASSAY_OK;
}

/// Requests that begin with the first page of request 0 have two splits of 16 keys; those with the
/// same second one too. What is left is one split, of all requests.
std::vector<int32_t> ends_by_pages(const assay_paged_kv &kv, int32_t request) {
  const auto shared = [&](int page) {
    int rows = 0;
    for (int r = 0; r < kv.rows; ++r)
      rows += kv.seq_lens[r] >= (page + 1) * kPage &&
                      kv.page_table[r * kv.page_table_stride + page] ==
                          kv.page_table[request * kv.page_table_stride + page]
                  ? 1
                  : 0;
    return rows > 1;
  };
  std::vector<int32_t> ends;
  const int len = kv.seq_lens[request];
  while (static_cast<int>(ends.size()) * kPage + kPage < len &&
         shared(static_cast<int>(ends.size())))
    ends.push_back((static_cast<int>(ends.size()) + 1) * kPage);
  ends.push_back(len);
  return ends;
}
assay_status shares_pages(const void *params, assay_key_tile *tiles, int64_t capacity,
                          int64_t *first) {
  return order(params, tiles, capacity, first, ends_by_pages);
}

/// One split, whatever the pages.
assay_status looks_at_lengths(const void *params, assay_key_tile *tiles, int64_t capacity,
                              int64_t *first) {
  return order(params, tiles, capacity, first, [](const assay_paged_kv &kv, int32_t request) {
    return std::vector<int32_t>{kv.seq_lens[request]};
  });
}

/// Four requests with the first two pages in common.
constexpr const char *kCase = "assay-case 1\nfamily = paged\nkernel = reference_v1\n"
                              "property = within_budget\nbatch = 4\ngroup_size = 2\n"
                              "page_size = 16\nsharing = prefix\nseq_lens = 50, 40, 33, 20\nend\n";

assay_kernel declaring(decltype(assay_kernel::key_order) key_order) {
  assay_kernel kernel = reference::kernel("reference_v1");
  kernel.key_order = key_order;
  kernel.arithmetic.max_splits = 8; // as many as shares_pages() has at most, and more
  kernel.arithmetic.merge_stages = 1;
  return kernel;
}

class ExplainSharedWork : public Cli {
protected:
  std::string explained(decltype(assay_kernel::key_order) key_order) {
    const assay_kernel kernel = declaring(key_order);
    const Ran ran = program(one_kernel(kernel), {"explain", file("a.case", kCase)});
    EXPECT_EQ(ran.code, kExitPass) << ran.out << ran.err;
    return ran.out;
  }
};

TEST_F(ExplainSharedWork, NamesKeysRequestsAndSplits) {
  const std::string out = explained(shares_pages);
  for (const char *line :
       {"computed once, as the order of keys says:",
        "keys     0 .. 16    of 4 requests (0 1 2 3), 8 query rows a kv head, splits of 16 keys",
        "keys    16 .. 32    of 3 requests (0 1 2), 6 query rows a kv head, splits of 16 keys",
        "of their own the requests have 18 8 1 4 keys",
        "63 keys are read in place of 143, for 14 partial states"})
    EXPECT_NE(out.find(line), std::string::npos) << line << "\n" << out;
}

TEST_F(ExplainSharedWork, SaysNothingOfAKernelThatDoesNotLookAtPages) {
  EXPECT_EQ(explained(looks_at_lengths).find("computed once"), std::string::npos);
}

TEST_F(ExplainSharedWork, SaysNothingWithoutAnOrder) {
  EXPECT_EQ(explained(nullptr).find("computed once"), std::string::npos);
}

} // namespace
} // namespace assay
