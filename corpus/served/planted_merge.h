// SPDX-License-Identifier: Apache-2.0
// A call of merge_states, and what it gives for one row of one head when a stored state is wrong.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "corpus/served/layout.h"
#include "properties/machine/machine.h"

namespace assay::served {

class PlantedMerge {
public:
  PlantedMerge(Machine &machine, int rows, int heads, int states);

  int row() const { return rows_ * 3 / 5; }
  int head() const { return heads_ - 2; }
  /// The stored O and LSE of state `state` of the row's head: changing them makes plant() wrong.
  std::vector<uint16_t> o_of(int state, int head);
  float lse_of(int state, int head);
  void store(int state, const std::vector<uint16_t> &o, float lse);
  /// Runs with what was stored, takes the row's head, and puts the right states back.
  void plant();
  /// Changes what was written.
  void write(const std::function<void(std::vector<uint16_t> &o, float &lse)> &change);
  void restore();

  std::vector<oracle::RowHead> open();
  oracle::Report on_host();

private:
  void *state_o(void *base, int state, int head) const;
  float *state_lse(float *base, int state, int head) const;
  size_t output(int head) const { return static_cast<size_t>(row() * heads_ + head); }
  void run(void *o, float *lse);

  Machine &machine_;
  const int rows_, heads_, states_;
  assay_merge_states_params p_{};
  void *o_ = nullptr, *right_o_ = nullptr, *wrong_o_ = nullptr, *o_in_ = nullptr;
  float *lse_ = nullptr, *right_lse_ = nullptr, *wrong_lse_ = nullptr, *lse_in_ = nullptr;
  std::vector<uint16_t> right_states_;
  std::vector<float> right_lses_;
};

struct MergeMistake {
  std::string name;
  int element;
  std::function<void(PlantedMerge &)> plant;
};
std::vector<MergeMistake> mistakes_of_merges();

} // namespace assay::served
