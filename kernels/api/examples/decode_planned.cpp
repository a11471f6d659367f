// SPDX-License-Identifier: Apache-2.0
// A decode step of 3 layers with one plan: paged_attention_v2 on the CPU executor.
#include <assay/assay.h>

#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <vector>

namespace {

void check(assay_status status) {
  if (status != ASSAY_OK) throw std::runtime_error(assay_last_error());
}

/// Scratch of the size that the library asks for, 16-byte aligned.
struct alignas(16) Block {
  char bytes[16] = {};
};
using Scratch = std::vector<Block>;
Scratch scratch(uint64_t bytes) { return Scratch((bytes + 15) / 16); }

constexpr int kHeads = 8, kKvHeads = 2, kDim = 128, kPage = 16, kPages = 40;
constexpr int kTokens = 600;

} // namespace

int main() try {
  const int32_t seq_len = kTokens;
  std::vector<int32_t> page_table(kPages);
  for (int i = 0; i < kPages; ++i)
    page_table[i] = kPages - 1 - i;
  std::vector<Block> q(kHeads * kDim / 8), o(q.size()), k(kPages * kPage * kKvHeads * kDim / 8),
      v(k);
  std::vector<float> lse(kHeads);

  assay_paged_params p = assay_paged_params_init();
  p.target = ASSAY_TARGET_SIMT;
  p.dtype = p.kv_dtype = ASSAY_FP16;
  p.batch = p.q_len = 1;
  p.num_qo_heads = kHeads;
  p.num_kv_heads = kKvHeads;
  p.head_dim = kDim;
  p.sm_scale = 1.0f / std::sqrt(float{kDim});
  p.q = q.data();
  p.out = o.data();
  p.lse = lse.data();
  p.q_stride_batch = p.out_stride_batch = kHeads * kDim;
  p.q_stride_head = p.out_stride_head = kDim;
  p.lse_stride_batch = kHeads;
  p.lse_stride_head = 1;
  p.kv.k = k.data();
  p.kv.v = v.data();
  p.kv.k_stride_page = p.kv.v_stride_page = kPage * kKvHeads * kDim;
  p.kv.k_stride_token = p.kv.v_stride_token = kKvHeads * kDim; // NHD
  p.kv.k_stride_head = p.kv.v_stride_head = kDim;
  p.kv.page_table = page_table.data();
  p.kv.page_table_stride = p.kv.max_pages = kPages;
  p.kv.seq_lens = &seq_len;
  p.kv.rows = 1;
  p.kv.page_size = kPage;

  check(assay_paged_attention_v2_workspace_size(&p, &p.workspace_bytes));
  check(assay_paged_attention_v2_plan_size(&p, &p.plan_bytes));
  Scratch workspace = scratch(p.workspace_bytes), plan = scratch(p.plan_bytes);
  p.workspace = workspace.data();
  p.plan = plan.data();

  check(assay_paged_attention_v2_plan(&p)); // once per step
  for (int layer = 0; layer < 3; ++layer) {
    check(assay_paged_attention_v2(&p));
    std::printf("layer %d: lse %.6f\n", layer, lse[kHeads - 1]);
    if (std::abs(lse[kHeads - 1] - std::log(float{kTokens})) > 1e-4f) return 1;
  }
  return 0;
} catch (const std::exception &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
