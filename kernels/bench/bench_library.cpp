// SPDX-License-Identifier: Apache-2.0
// libassay_bench.so: what peers.py needs of the bench beside the C ABI. Not part of that ABI.
#include "kernels/bench/floor.cuh"

#include "kernels/bench/cells/cells.h"

#include <iterator>
#include <nlohmann/json.hpp>

using namespace assay::bench;

extern "C" {

/// The standard cells with the length of every request, and the commit this was built from.
const char *assay_bench_cells() {
  static const std::string text = [] {
    nlohmann::json cells = nlohmann::json::array();
    for (const Cell &c : standard_cells())
      cells.push_back({{"name", c.name},
                       {"batch", c.batch},
                       {"seq", c.seq},
                       {"lengths", cell_lengths(c)},
                       {"num_qo_heads", c.num_qo_heads},
                       {"num_kv_heads", c.num_kv_heads},
                       {"head_dim", c.head_dim},
                       {"page_size", c.page_size},
                       {"kv_dtype", name_of(c.kv_dtype)}});
    return nlohmann::json{{"commit", ASSAY_COMMIT}, {"cells", cells}}.dump();
  }();
  return text.c_str();
}

int assay_bench_floor_shapes() { return static_cast<int>(std::size(kFloorShapes)); }

/// Enqueues floor kernel `shape`, 0 .. assay_bench_floor_shapes() - 1; false when it cannot launch.
bool assay_bench_floor(int shape, const void *data, uint64_t bytes, uint32_t *sink,
                       int multiprocessors, bool early_start, void *stream) {
  try {
    enqueue_floor(kFloorShapes[shape], data, bytes, sink, multiprocessors, early_start,
                  static_cast<cudaStream_t>(stream));
    return true;
  } catch (const std::exception &) {
    return false;
  }
}

} // extern "C"
