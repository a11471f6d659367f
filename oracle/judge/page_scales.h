// SPDX-License-Identifier: Apache-2.0
// Scales of quantised caches that differ from token to token.
#pragma once

#include "oracle/judge/array_view.h"
#include "oracle/rows/rows.h"

namespace assay::oracle {

/**
 * k_scale or v_scale of a call where it is one of tokens: [pages, slots, kv_heads] or
 * [pages, slots, kv_heads, blocks]. int8 caches have no other: there [1] and [kv_heads] are the same for all tokens.
 */
class PageScales {
public:
  /** Throws ArrayError for scales that do not fit their cache. */
  PageScales(const char *name, const assay_array &scale, const ArrayView &cache);

  TokenScales of_tokens() const { return tokens_; } ///< no data: they are of the call or of heads
  int64_t stride_page() const { return stride_page_; }

private:
  TokenScales tokens_;
  int64_t stride_page_ = 0;
};

/** Throws ArrayError for what no bound is known for: BOUNDS.md says why. */
void require_token_scales(const AttentionRows &rows, const assay_arithmetic &arithmetic);

} // namespace assay::oracle
