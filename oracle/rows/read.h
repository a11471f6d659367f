// SPDX-License-Identifier: Apache-2.0
// What a row's places hold, decoded exactly.
#pragma once

#include <vector>

#include "oracle/exact/row_input.h"
#include "oracle/rows/memory.h"
#include "oracle/rows/rows.h"

namespace assay::oracle {

/** Keys [begin, end) of a list, of one kv head; finish() is left to the caller. */
KeySet read_keys(const AttentionRows &rows, const Memory &memory, int list, int kv_head, int begin,
                 int end);
/** Appends the scales of a run's tokens, [count, kv heads, blocks]: of the values where `values`,
    else of the keys. They lie here. NaN: nothing is claimed of rows that see the token. */
void append_scales(const AttentionRows &rows, const KeyRun &run, int kv_heads, bool values,
                   std::vector<float> &out);
std::vector<float> read_query(const AttentionRows &rows, const Memory &memory, int row, int head);
RowFeatures features_of(const AttentionRows &rows, int row, int head);

/** The states of one (row, head): O [states, dims] and LSE [states]. */
struct States {
  std::vector<float> o, lse;
};
States read_states(const MergeRows &rows, const Memory &memory, int row, int head);

/** What a call wrote. Apart from its rows, so that the inputs of a call in place can be those from
    before it. */
struct CallOutputs {
  const void *o;
  const float *lse; ///< null: it writes none
};

/** What was written for one (row, head). */
struct Written {
  std::vector<float> o;
  float lse = 0.0f;
  bool has_lse = false;
};
Written read_outputs(const RowOutputs &out, const CallOutputs &outputs, const Memory &memory,
                     int row, int head);

} // namespace assay::oracle
