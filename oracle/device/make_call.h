// SPDX-License-Identifier: Apache-2.0
// Internal: a call's rows as the text that judges them takes them.
#pragma once

#include <functional>
#include <vector>

#include "oracle/device/call.h"

namespace assay::oracle::device {

/** What a Call is made of, kept while it is in use. */
struct CallArrays {
  ErrorModel model;
  RowFacts facts;
  std::vector<RowShape> shapes; ///< [rows, 2], without and with a sink that counts
  std::vector<DevicePool> pools;
  std::vector<KeyRun> runs; ///< where tokens have scales; else the rows' own are taken
  std::vector<float> k_scales, v_scales;
  std::vector<RowTile> tiles; ///< none where T0 and the LSE alone are judged
  std::vector<int64_t> first_tile;
  bool replays = false; ///< there are tiers behind T0
};
int kv_heads_of(const AttentionRows &rows);

/** Throws OrderError as the reader does. */
CallArrays arrays_of(const AttentionRows &rows, const KernelModel &model,
                     const JudgeOptions &options);

/** Gives an array its place where the text runs; each is asked for once, in the same order. */
using Place = std::function<const void *(const void *from, size_t bytes)>;

template <class T>
const T *placed(const std::vector<T> &from, const Place &place) {
  return static_cast<const T *>(place(from.data(), from.size() * sizeof(T)));
}

/** All but scratch and results. Where `place` keeps arrays, both must outlive the call. */
Call make_call(const AttentionRows &rows, const CallOutputs &outputs, const KernelModel &model,
               const CallArrays &arrays, const Place &place);

} // namespace assay::oracle::device
