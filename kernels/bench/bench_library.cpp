// SPDX-License-Identifier: Apache-2.0
// libassay_bench.so: what peers.py needs of the bench beside the C ABI. Not part of that ABI.
#include "kernels/bench/floor.cuh"

#include "kernels/bench/cells/cell_set.h"

#include <iterator>
#include <nlohmann/json.hpp>

using namespace assay::bench;

namespace {

nlohmann::json about(const Cell &c) {
  return {{"kind", "decode"},
          {"name", c.name},
          {"batch", c.batch},
          {"seq", c.seq},
          {"lengths", cell_lengths(c)},
          {"num_qo_heads", c.num_qo_heads},
          {"num_kv_heads", c.num_kv_heads},
          {"head_dim", c.head_dim},
          {"page_size", c.page_size},
          {"kv_dtype", name_of(c.kv_dtype)}};
}

nlohmann::json about(const CascadeCell &c) {
  nlohmann::json levels = nlohmann::json::array();
  for (const CascadeLevel &level : c.levels)
    levels.push_back({{"segments", level.segments}, {"tokens", level.tokens}});
  return {{"kind", c.levels.size() == 1 ? "prefix" : "cascade"},
          {"name", c.name},
          {"batch", c.batch},
          {"levels", levels},
          {"flops", flops(c)},
          {"num_qo_heads", c.num_qo_heads},
          {"num_kv_heads", c.num_kv_heads},
          {"head_dim", c.head_dim},
          {"page_size", c.page_size},
          {"kv_dtype", name_of(c.kv_dtype)}};
}

nlohmann::json about(const MergeCell &c) {
  return {{"kind", name_of(c.op)},
          {"name", c.name},
          {"rows", c.rows},
          {"states", c.states},
          {"num_heads", c.num_heads},
          {"head_dim", c.head_dim},
          {"kv_dtype", name_of(KvDtype::kBf16)}};
}

} // namespace

extern "C" {

/// The standard cells of every kind, and the commit this was built from.
const char *assay_bench_cells() {
  static const std::string text = [] {
    const CellSet set = standard_cell_set();
    nlohmann::json cells = nlohmann::json::array();
    for (const Cell &c : set.decode)
      cells.push_back(about(c));
    for (const CascadeCell &c : set.cascade)
      cells.push_back(about(c));
    for (const MergeCell &c : set.merge)
      cells.push_back(about(c));
    return nlohmann::json{{"commit", ASSAY_COMMIT}, {"cells", cells}}.dump();
  }();
  return text.c_str();
}

int assay_bench_floor_shapes() { return static_cast<int>(std::size(kFloorShapes)); }

/// Enqueues floor kernel `shape`, 0 .. assay_bench_floor_shapes() - 1; false when it cannot launch.
bool assay_bench_floor(int shape, const void *data, uint64_t bytes, uint32_t *sink,
                       int multiprocessors, bool enable_pdl, void *stream) {
  try {
    enqueue_floor(kFloorShapes[shape], data, bytes, sink, multiprocessors, enable_pdl,
                  static_cast<cudaStream_t>(stream));
    return true;
  } catch (const std::exception &) {
    return false;
  }
}

} // extern "C"
