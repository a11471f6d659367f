// SPDX-License-Identifier: Apache-2.0
#include "corpus/served/planted_merge.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "corpus/served/mistakes.h"
#include "kernels/abi/kernel_table.h"
#include "oracle/rows/build.h"

namespace assay::served {

PlantedMerge::PlantedMerge(Machine &machine, int rows, int heads, int states)
    : machine_(machine), rows_(rows), heads_(heads), states_(states) {
  const auto outputs = static_cast<size_t>(rows) * static_cast<size_t>(heads);
  const size_t stored = outputs * static_cast<size_t>(states);
  o_in_ = machine.allocate(stored * kDim * 2);
  machine.fill_elements(o_in_, stored * kDim, false, 0);
  lse_in_ = static_cast<float *>(machine.allocate(stored * sizeof(float)));
  std::vector<float> lse(stored);
  for (size_t i = 0; i < stored; ++i)
    lse[i] = 8.0f + static_cast<float>(i * 37 % 101) / 101.0f;
  machine.copy(lse_in_, lse.data(), stored * sizeof(float));
  for (void **o : {&o_, &right_o_, &wrong_o_})
    *o = machine.allocate(outputs * kDim * 2);
  for (float **l : {&lse_, &right_lse_, &wrong_lse_})
    *l = static_cast<float *>(machine.allocate(outputs * sizeof(float)));
  p_.struct_size = sizeof p_;
  p_.target = machine.target();
  p_.dtype = ASSAY_BF16;
  p_.num_rows = rows;
  p_.num_states = states;
  p_.num_heads = heads;
  p_.head_dim = kDim;
  p_.o_in = o_in_;
  p_.lse_in = lse_in_;
  p_.out = o_;
  p_.lse = lse_;
  p_.o_in_stride_state = p_.out_stride_row = int64_t{heads} * kDim;
  p_.o_in_stride_head = p_.out_stride_head = kDim;
  p_.lse_in_stride_state = p_.lse_stride_row = heads;
  p_.lse_in_stride_head = p_.lse_stride_head = 1;
  machine.finish();
  run(right_o_, right_lse_);
  restore();
  right_states_.resize(static_cast<size_t>(states) * kDim);
  for (int s = 0; s < states; ++s) {
    const std::vector<uint16_t> o = o_of(s, head());
    std::copy(o.begin(), o.end(), right_states_.begin() + int64_t{s} * kDim);
    right_lses_.push_back(lse_of(s, head()));
  }
}

void *PlantedMerge::state_o(void *base, int state, int head) const {
  const auto at = static_cast<size_t>((row() * states_ + state) * heads_ + head);
  return static_cast<uint16_t *>(base) + at * kDim;
}
float *PlantedMerge::state_lse(float *base, int state, int head) const {
  return base + (row() * states_ + state) * heads_ + head;
}

void PlantedMerge::run(void *o, float *lse) {
  assay_merge_states_params p = p_;
  p.out = o;
  p.lse = lse;
  const assay_kernel &kernel = own_kernel("merge_states", machine_.target());
  if (kernel.run(&p) != ASSAY_OK) throw std::runtime_error(kernel.last_error());
  machine_.finish();
}

std::vector<uint16_t> PlantedMerge::o_of(int state, int head) {
  std::vector<uint16_t> o(kDim);
  machine_.copy(o.data(), state_o(o_in_, state, head), kDim * 2);
  return o;
}
float PlantedMerge::lse_of(int state, int head) {
  float lse = 0.0f;
  machine_.copy(&lse, state_lse(lse_in_, state, head), sizeof lse);
  return lse;
}
void PlantedMerge::store(int state, const std::vector<uint16_t> &o, float lse) {
  machine_.copy(state_o(o_in_, state, head()), o.data(), kDim * 2);
  machine_.copy(state_lse(lse_in_, state, head()), &lse, sizeof lse);
}

void PlantedMerge::plant() {
  run(wrong_o_, wrong_lse_);
  const size_t at = output(head());
  machine_.copy(static_cast<uint16_t *>(o_) + at * kDim,
                static_cast<const uint16_t *>(wrong_o_) + at * kDim, kDim * 2);
  machine_.copy(lse_ + at, wrong_lse_ + at, sizeof(float));
  for (int s = 0; s < states_; ++s) {
    const auto first = right_states_.begin() + int64_t{s} * kDim;
    store(s, {first, first + kDim}, right_lses_[static_cast<size_t>(s)]);
  }
}

void PlantedMerge::write(const std::function<void(std::vector<uint16_t> &, float &)> &change) {
  const size_t at = output(head());
  std::vector<uint16_t> o(kDim);
  float lse = 0.0f;
  machine_.copy(o.data(), static_cast<uint16_t *>(o_) + at * kDim, kDim * 2);
  machine_.copy(&lse, lse_ + at, sizeof lse);
  change(o, lse);
  machine_.copy(static_cast<uint16_t *>(o_) + at * kDim, o.data(), kDim * 2);
  machine_.copy(lse_ + at, &lse, sizeof lse);
}

void PlantedMerge::restore() {
  const auto outputs = static_cast<size_t>(rows_) * static_cast<size_t>(heads_);
  machine_.copy(o_, right_o_, outputs * kDim * 2);
  machine_.copy(lse_, right_lse_, outputs * sizeof(float));
}

std::vector<oracle::RowHead> PlantedMerge::open() {
  const oracle::KernelModel model{.arithmetic =
                                      own_kernel("merge_states", machine_.target()).arithmetic};
  return machine_.judge_merges(std::get<oracle::MergeRows>(oracle::rows_of(p_)), {o_, lse_}, model)
      .open;
}

oracle::Report PlantedMerge::on_host() {
  const oracle::KernelModel model{.arithmetic =
                                      own_kernel("merge_states", machine_.target()).arithmetic};
  return oracle::judge_one(oracle::rows_of(p_), {o_, lse_}, model, row(), head(),
                           machine_.memory());
}

std::vector<MergeMistake> mistakes_of_merges() {
  const auto stored = [](const std::string &name,
                         std::function<void(PlantedMerge &)> change) -> MergeMistake {
    return {name, kAnyElement, [change](PlantedMerge &merge) {
              change(merge);
              merge.plant();
            }};
  };
  return {
      stored("a state left out",
             [](PlantedMerge &m) { m.store(2, m.o_of(2, m.head()), -INFINITY); }),
      stored("a state's slot exchanged with its neighbour",
             [](PlantedMerge &m) {
               const auto a = m.o_of(2, m.head()), b = m.o_of(3, m.head());
               m.store(2, b, m.lse_of(2, m.head()));
               m.store(3, a, m.lse_of(3, m.head()));
             }),
      stored(
          "a state of the neighbouring head",
          [](PlantedMerge &m) { m.store(5, m.o_of(5, m.head() + 1), m.lse_of(5, m.head() + 1)); }),
      stored("a state's LSE in the other base",
             [](PlantedMerge &m) {
               m.store(4, m.o_of(4, m.head()), m.lse_of(4, m.head()) * 1.44269504f);
             }),
      stored("a state's LSE off by 2^-8",
             [](PlantedMerge &m) {
               m.store(4, m.o_of(4, m.head()), m.lse_of(4, m.head()) + 0x1p-8f);
             }),
      {"an element's last bits", 77,
       [](PlantedMerge &m) { m.write([](std::vector<uint16_t> &o, float &) { o[77] += 2; }); }},
      {"an LSE in the other base", kLse,
       [](PlantedMerge &m) {
         m.write([](std::vector<uint16_t> &, float &lse) { lse *= 1.44269504f; });
       }},
  };
}

} // namespace assay::served
