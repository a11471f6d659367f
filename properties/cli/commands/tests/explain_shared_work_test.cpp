// SPDX-License-Identifier: Apache-2.0
// explain: what a kernel computes once for several requests, read off its order of keys.
#include "properties/case/case_text.h"
#include "properties/relate/shared_work.h"
#include "properties/tests/cli_fixture.h"

namespace assay {
namespace {

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
