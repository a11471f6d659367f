// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/cell_run.cuh"

#include "kernels/bench/floor.cuh"

#include <limits>

namespace assay::bench {

void check_status(assay_status status, const char *what) {
  if (status != ASSAY_OK) throw std::runtime_error(std::string(what) + ": " + assay_last_error());
}

int set_count(uint64_t bytes, uint64_t l2_bytes, const Options &options) {
  const uint64_t per_set = std::max<uint64_t>(bytes, 1);
  const int sets = static_cast<int>(3 * l2_bytes / per_set) + 2;
  return sets > 2 && sets * per_set > options.max_pool_bytes ? 2 : sets;
}

double read_floor_us(const FloorSets &sets, const Stream &stream, int multiprocessors, int replays,
                     bool enable_pdl) {
  DeviceArray<uint32_t> sink(1);
  const uint64_t bytes = sets.bytes / 16 * 16;
  double best = std::numeric_limits<double>::infinity();
  for (const FloorShape &shape : kFloorShapes)
    best = std::min(best, graph_median_us(stream, std::max(sets.sets, 4), replays, [&](int i) {
                      enqueue_floor(shape, sets.data + (i % sets.sets) * bytes, bytes, sink.get(),
                                    multiprocessors, enable_pdl, stream.get());
                    }));
  return best;
}

Memory device_memory() {
  Memory memory;
  memory.read = [](void *to, const void *from, size_t row_bytes, size_t pitch, size_t rows) {
    ASSAY_BENCH_CHECK(
        cudaMemcpy2D(to, row_bytes, from, pitch, row_bytes, rows, cudaMemcpyDeviceToHost));
  };
  memory.fill = [](void *at, unsigned char value, size_t bytes) {
    ASSAY_BENCH_CHECK(cudaMemset(at, value, bytes));
  };
  return memory;
}

} // namespace assay::bench
