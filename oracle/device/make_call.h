// SPDX-License-Identifier: Apache-2.0
// Internal: a call's rows as passes take them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "oracle/device/bulk_call.h"

namespace assay::oracle::device {

/** Why no pass can take a call; empty: they can. */
std::string refused(const AttentionRows &rows, const KernelModel &model);

/** What one pass over the keys takes (plain.cuh). */
bool plain(const AttentionRows &rows, const KernelModel &model);

/** Into what each row is cut, without and with a sink that counts, and what rows have in common. */
struct CallShape {
  ErrorModel model;
  RowFacts facts;
  std::vector<RowShape> shapes; ///< [rows, 2]
};
/** Throws OrderError as the reader does. */
CallShape shape_of_call(const AttentionRows &rows, const KernelModel &model,
                        AttentionReader &reader);

/** Gives an array its place where the passes run; each is asked for once, in the same order. */
using Place = std::function<const void *(const void *from, size_t bytes)>;
inline constexpr int kCallArrays = 10;

template <class T>
const T *placed(const std::vector<T> &from, const Place &place) {
  return static_cast<const T *>(place(from.data(), from.size() * sizeof(T)));
}

/** All but what belongs to a launch. Where `place` keeps arrays, both must outlive the call. */
Call make_call(const AttentionRows &rows, const CallOutputs &outputs, const CallShape &shape,
               const Place &place);

} // namespace assay::oracle::device
