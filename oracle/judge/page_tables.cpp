// SPDX-License-Identifier: Apache-2.0
#include "oracle/judge/page_tables.h"

#include <algorithm>
#include <string>

#include "oracle/judge/arrays.h"

namespace assay::oracle {

PageTables::PageTables(const assay_judge_attention_params &p, int64_t requests, int64_t pages,
                       int64_t slots)
    : table_("page_table", p.page_table), v_table_("v_page_table", p.v_page_table),
      indptr_("page_indptr", p.page_indptr), pages_(pages), slots_(slots) {
  if (indptr_.given() && !table_.given()) indptr_.fail(" is given without page_table");
  if (v_table_.given() && !table_.given()) v_table_.fail(" is given without page_table");
  if (!table_.given()) {
    if (pages < requests)
      throw ArrayError(ASSAY_INVALID_ARGUMENT,
                       "k has " + std::to_string(pages) +
                           " pages, without page_table expected one for each of " +
                           std::to_string(requests) + " requests");
    return;
  }
  check(table_, requests);
  if (indptr_.given())
    indptr_.require({{"requests + 1", requests + 1}}, {ASSAY_INT32, ASSAY_INT64});
  if (!v_table_.given()) return;
  check(v_table_, requests);
  for (int axis = 0; axis < (indptr_.given() ? 1 : 2); ++axis)
    if (v_table_.size(axis) != table_.size(axis))
      v_table_.fail(" has another shape than page_table");
}

void PageTables::append(int64_t request, int64_t keys, PageStrides k, PageStrides v,
                        std::vector<KeyRun> &runs) const {
  const int64_t count = (keys + slots_ - 1) / slots_;
  const int64_t room = !table_.given()   ? 1
                       : indptr_.given() ? indptr_.integer(request + 1) - indptr_.integer(request)
                                         : table_.size(1);
  if (indptr_.given() &&
      (indptr_.integer(request) < 0 || room < 0 || indptr_.integer(request + 1) > table_.size(0)))
    indptr_.fail("[" + std::to_string(request) + "] .. leaves page_table's " +
                 std::to_string(table_.size(0)) + " entries");
  if (count > room)
    throw ArrayError(ASSAY_INVALID_ARGUMENT,
                     "seq_lens[" + std::to_string(request) + "] is " + std::to_string(keys) +
                         (table_.given() ? ", its page table holds at most "
                                         : ", and without a page_table its cache holds at most ") +
                         std::to_string(room * slots_));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t first = i * slots_;
    const int64_t k_page = page(table_, request, i);
    const int64_t v_page = v_table_.given() ? page(v_table_, request, i) : k_page;
    runs.push_back({static_cast<int32_t>(first),
                    static_cast<int32_t>(std::min(slots_, keys - first)), 0, k_page * k.elements,
                    v_page * v.elements, k_page * k.scales, v_page * v.scales});
  }
}

void PageTables::check(const ArrayView &table, int64_t requests) const {
  if (indptr_.given())
    table.require({{"entries"}}, {ASSAY_INT32, ASSAY_INT64});
  else
    table.require({{"requests", requests}, {"columns"}}, {ASSAY_INT32, ASSAY_INT64});
}

int64_t PageTables::page(const ArrayView &table, int64_t request, int64_t i) const {
  if (!table.given()) return request;
  const int64_t id =
      indptr_.given() ? table.integer(indptr_.integer(request) + i) : table.integer(request, i);
  if (id < 0 || id >= pages_)
    table.fail(" names page " + std::to_string(id) + " for request " + std::to_string(request) +
               ", the pool has " + std::to_string(pages_));
  return id;
}

} // namespace assay::oracle
