// SPDX-License-Identifier: Apache-2.0
// A call of paged attention as it is served, run by our kernel; and the same call as a kernel with
// one mistake would see it, of which one row of one head takes the place of the right one.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "corpus/served/layout.h"
#include "properties/machine/machine.h"

namespace assay::served {

class ServedCall {
public:
  ServedCall(Machine &machine, const Sizes &sizes);

  const Sizes &sizes() const { return sizes_; }
  Machine &machine() { return machine_; }
  const Call &right() const { return right_; }
  int row() const { return sizes_.request * sizes_.q_len + sizes_.token; }
  int head() const { return sizes_.head; }
  int kv_head() const { return sizes_.head / (sizes_.heads / sizes_.kv_heads); }
  int32_t &length_of(Call &call) const { return call.lengths[static_cast<size_t>(sizes_.request)]; }
  int32_t length() const { return right_.lengths[static_cast<size_t>(sizes_.request)]; }

  /// Keys that the row's head looks at, each with a few per cent of its weight: the first and the
  /// last that it sees, two in the middle, and the one behind the last, which it does not see.
  int first_key() const { return sizes_.first_key(); }
  int last_key() const { return sizes_.last_key(); }
  int middle_key() const { return sizes_.middle_key(); }
  int other_key() const { return middle_key() + sizes_.split; }
  /// Where the split of the middle key begins.
  int split_begin() const { return middle_key() / sizes_.split * sizes_.split; }

  /// Gives the request a copy of the page that holds the key, in a page of nobody.
  void take_spare_page(Call &wrong, int position);
  void *key(Call &call, int position, int kv_head) const;
  void *value(Call &call, int position, int kv_head) const;
  size_t token_bytes() const { return kDim * element_bytes(); }
  void copy(void *to, const void *from, size_t bytes) { machine_.copy(to, from, bytes); }
  /// Without the keys [begin, end), whole pages.
  void drop_pages(Call &wrong, int begin, int end) const;
  /// Queries of a step before this one.
  const void *stale_queries();

  /// Runs the wrong call; of its outputs the row's head, or another row's, takes the row's place.
  void plant(Call wrong) { plant(std::move(wrong), row(), head()); }
  void plant(Call wrong, int from_row, int from_head);
  /// Keys of the call by the row's head: what is exact, O and behind it the LSE.
  std::vector<double> exact(const Call &call);

  std::vector<uint16_t> o(int row, int head);
  float lse(int row, int head);
  void write(int row, int head, const std::vector<uint16_t> &o, float lse);
  void write_exact(const std::vector<double> &o_and_lse);
  void restore(); ///< every output is the right one

  std::vector<oracle::RowHead> open_of_first();
  std::vector<oracle::RowHead> open_of_every();
  oracle::Report on_host(const oracle::RowHead &at);
  /// Bounds of the row's head: T0 of each element, and the LSE.
  std::vector<oracle::ElementBounds> bounds() { return bounds(rows_, model_); }

private:
  size_t element_bytes() const { return sizes_.kv_dtype == ASSAY_BF16 ? 2 : 1; }
  int64_t token_elements() const { return right_.p.kv.k_stride_token; }
  size_t page_bytes() const {
    return static_cast<size_t>(kPage * token_elements()) * element_bytes();
  }
  std::vector<oracle::ElementBounds> bounds(const oracle::AttentionRows &rows,
                                            const oracle::KernelModel &model);
  int rows() const { return static_cast<int>(sizes_.lengths.size()) * sizes_.q_len; }
  void allocate();
  void look_at_keys();
  void look_at(int position);
  assay_paged_params host_params(const Call &call) const;
  oracle::AttentionRows rows_of(const Call &call) const;
  oracle::KernelModel model_of(const Call &call) const;
  template <class T>
  const T *upload(const std::vector<T> &from, void *to);
  void run(const Call &call, void *o, float *lse);
  void *output(void *base, int row, int head) const;
  float *lse_at(float *base, int row, int head) const { return base + row * sizes_.heads + head; }

  Machine &machine_;
  const Sizes sizes_;
  const assay_kernel *kernel_ = nullptr;
  Call right_;
  oracle::AttentionRows rows_;
  oracle::KernelModel model_;
  int spare_pages_ = 0, next_spare_ = 0;
  void *workspace_ = nullptr, *stale_q_ = nullptr;
  uint64_t workspace_bytes_ = 0;
  void *arrays_[6] = {}; ///< arrays of the machine that a Call holds
  void *o_ = nullptr, *right_o_ = nullptr, *wrong_o_ = nullptr;
  float *lse_ = nullptr, *right_lse_ = nullptr, *wrong_lse_ = nullptr;
};

} // namespace assay::served
