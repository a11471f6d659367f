// SPDX-License-Identifier: Apache-2.0
// Property: a cache whose pages stand in lists of each row's length (page_indptr), and in lists of
// each kv head, gives what the same cache with a page table gives. Catches: lists found by a
// stride, another row's list, entries behind a list, one head's list for all. Exact where a kernel
// is deterministic, and within bound with lists of heads, which may share no pages.
#include "properties/call/page_lists.h"
#include "properties/invariants/invariants.h"
#include "properties/relate/outcome.h"
#include "properties/relate/relation.h"

namespace assay {
namespace {

CheckResult of_heads(const Outcome &table, Outcome lists, Sut &sut) {
  if (!lists.ok()) return lists.check;
  lists.before = table.before; // the same values, in pages that the oracle would not find
  return all_related(table, lists, Relation{}, sut, "a page list for each kv head");
}

} // namespace

CheckResult page_lists_equal_table(const Problem &p, Sut &sut) {
  Problem plain = p;
  plain.enable_pdl = false; // the kernel in front writes keys where the table has them
  const Outcome table = run_problem(plain, sut);
  if (!table.ok()) return table.check;
  Tensors t = table.before;
  put_pages_into_lists(t);
  const Outcome lists = run_tensors(t, sut);
  if (!lists.ok()) return lists.check;
  const bool exact = sut.kernel().determinism != ASSAY_DETERMINISM_NONE;
  const CheckResult same = exact ? same_bits(table.after, lists.after, "pages in lists")
                                 : all_related(table, lists, Relation{}, sut, "pages in lists");
  if (!same.passed() || p.num_kv_heads == 1) return same;
  give_heads_their_lists(t);
  return of_heads(table, run_tensors(std::move(t), sut), sut);
}

} // namespace assay
