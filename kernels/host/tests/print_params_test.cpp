// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/print_params.h"

#include "kernels/common/params.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

struct Outer {
  PartialParams partial;
  int32_t splits[2];
  bool late;

  ASSAY_FIELDS(partial, splits, late)
};

TEST(PrintParams, nested_structs_arrays_and_pointers) {
  const Outer outer{{reinterpret_cast<float *>(uintptr_t{0x7f10}), nullptr}, {3, -1}, true};
  EXPECT_EQ(printed(outer), "{partial {o_accum 0x7f10, lse_accum 0x0}, splits [3, -1], late 1}");
}

TEST(PrintParams, every_field_of_a_cache) {
  PagedKvParams kv{};
  kv.page_size = FastDivisor::make(48);
  kv.v_token_bytes = 256;
  EXPECT_EQ(printed(kv),
            "{k 0x0, v 0x0, page_table 0x0, seq_lens 0x0, k_stride_head 0, v_stride_head 0, "
            "k_page_bytes 0, k_token_bytes 0, v_page_bytes 0, v_token_bytes 256, "
            "page_table_stride 0, page_table_stride_head 0, page_indptr 0x0, page_size.divisor 48, "
            "rows 0}");
}

} // namespace
} // namespace assay
