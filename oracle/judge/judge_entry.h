// SPDX-License-Identifier: Apache-2.0
// What the entry points of assay_judge.h share, wherever the arrays lie.
#pragma once

#include <cstring>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "kernels/abi/assay_judge.h"
#include "oracle/bounds/declaration.h"
#include "oracle/judge/arrays.h"
#include "oracle/judge/judge.h"

namespace assay::oracle {

/** Of this thread. */
std::string &judge_last_error();
assay_status refuse(assay_status status, const std::string &message);

/** Rows to judge: all, or the first, the last, those of the longest request, and others between. */
std::vector<int> chosen_rows(const CallRows &rows, int max_rows);

/** One (row, head) in 64 is recomputed in interval arithmetic, of long rows one in 1,024: a key
    costs about 20 us. */
CertifySample certified_sample();

/** `body(task)` for each of so many, on several threads; 0: as many as there are processors. Throws
    what one of them threw. */
void on_threads(size_t tasks, int threads, const std::function<void(size_t task)> &body);

/** sizeof a struct in ABI 0.13, the first whose callers are served. A struct that gets a field keeps
    its number here. */
template <class T>
inline constexpr uint32_t kFirstSize = sizeof(T);

/** A struct of an earlier header, `size` bytes long, continued by zeros. */
template <class T>
T continued(const T &given, size_t size) {
  T now{};
  std::memcpy(&now, &given, size);
  return now;
}

/** Writes as much of `from` as the caller's struct holds. */
template <class T>
void give(const T &from, T &to) {
  const uint32_t size = to.struct_size;
  std::memcpy(&to, &from, size);
  to.struct_size = size;
}

/** Refuses a struct that no version of `T` has; `name` goes in front. */
template <class T>
assay_status refuse_size(const T &given, const char *name) {
  if (given.struct_size >= kFirstSize<T> && given.struct_size <= sizeof(T)) return ASSAY_OK;
  return refuse(ASSAY_INVALID_ARGUMENT, std::string(name) + "struct_size is " +
                                            std::to_string(given.struct_size) + ", expected " +
                                            std::to_string(sizeof(T)));
}

void fill_report(const Report &from, size_t rows_judged, int rows, assay_judge_report &to);

/** An entry point that fills `report`: `fill(params, rows, model)` gives it. */
template <class Params, class Filled, class Fill>
assay_status fill_entry(const Params *given, Filled *report, Fill fill) {
  judge_last_error().clear();
  if (given == nullptr) return refuse(ASSAY_INVALID_ARGUMENT, "params is null");
  if (report == nullptr) return refuse(ASSAY_INVALID_ARGUMENT, "report is null");
  if (assay_status status = refuse_size(*given, "")) return status;
  if (assay_status status = refuse_size(*report, "report's ")) return status;
  try {
    const Params params = continued(*given, given->struct_size);
    require_declaration(params.arithmetic);
    const CallRows rows = rows_of(params);
    give(fill(params, rows, KernelModel{.arithmetic = params.arithmetic}), *report);
    return ASSAY_OK;
  } catch (const ArrayError &e) {
    return refuse(e.status(), e.what());
  } catch (const std::invalid_argument &e) {
    return refuse(ASSAY_INVALID_ARGUMENT, e.what());
  } catch (const std::exception &e) {
    return refuse(ASSAY_INTERNAL, e.what());
  }
}

/** An entry point: `judge(rows, outputs, model, rows_judged)` gives the Report. */
template <class Params, class Judge>
assay_status judge_entry(const Params *given, assay_judge_report *report, Judge judge) {
  return fill_entry(
      given, report, [&](const Params &params, const CallRows &rows, const KernelModel &model) {
        size_t rows_judged = 0;
        const CallOutputs outputs{params.out.data, static_cast<const float *>(params.lse.data)};
        const Report judged = judge(rows, outputs, model, rows_judged);
        assay_judge_report whole{};
        fill_report(judged, rows_judged, outputs_of(rows).rows(), whole);
        return whole;
      });
}

} // namespace assay::oracle
