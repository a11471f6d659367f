// SPDX-License-Identifier: Apache-2.0
// The headers as a C program sees them, and what a plugin table must hold.
#include "kernels/abi/plugin.h"

#include <gtest/gtest.h>

#include <string>

extern "C" assay_status abi_c99_empty_batch(void);

namespace {

TEST(Abi, an_empty_batch_is_a_success_that_launches_nothing) {
  EXPECT_EQ(abi_c99_empty_batch(), ASSAY_OK) << assay_last_error();
  EXPECT_STREQ(assay_last_error(), "");
}

TEST(Abi, the_plugin_table_lists_the_five_kernels_and_refuses_another_major) {
  EXPECT_EQ(assay_plugin_entry(ASSAY_ABI_MAJOR + 1), nullptr);
  const assay_plugin *plugin = assay_plugin_entry(ASSAY_ABI_MAJOR);
  ASSERT_NE(plugin, nullptr);
  EXPECT_GE(plugin->num_kernels, 5);
  for (int i = 0; i < plugin->num_kernels; ++i) {
    EXPECT_EQ(plugin->kernels[i].struct_size, sizeof(assay_kernel));
    EXPECT_NE(plugin->kernels[i].supports(nullptr), ASSAY_OK) << plugin->kernels[i].name;
  }
}

} // namespace
