// SPDX-License-Identifier: Apache-2.0
// Every invariant, one per file of its name; the statement is at the top of the file. A property
// registry (properties/run/registry.h) says which families each applies to.
#pragma once

#include "properties/case/problem.h"
#include "properties/relate/check_result.h"
#include "properties/sut/sut.h"

namespace assay {

CheckResult within_budget(const Problem &p, Sut &sut);

// Attention and merges.
CheckResult poison_untouched(const Problem &p, Sut &sut);
CheckResult run_to_run(const Problem &p, Sut &sut);
CheckResult call_sequence(const Problem &p, Sut &sut);
CheckResult schedule_independence(const Problem &p, Sut &sut);
CheckResult pdl_equals_plain(const Problem &p, Sut &sut);
CheckResult nan_reaches_outputs(const Problem &p, Sut &sut);
CheckResult nan_containment(const Problem &p, Sut &sut);
CheckResult batch_independence(const Problem &p, Sut &sut);
CheckResult head_permutation(const Problem &p, Sut &sut);
CheckResult constant_v(const Problem &p, Sut &sut);
CheckResult v_affine(const Problem &p, Sut &sut);
CheckResult algebra_exact(const Problem &p, Sut &sut);
CheckResult bad_calls_refused(const Problem &p, Sut &sut);
CheckResult limits_kept(const Problem &p, Sut &sut);
CheckResult score_shift(const Problem &p, Sut &sut);

// Attention.
CheckResult page_permutation(const Problem &p, Sut &sut);
CheckResult page_remap(const Problem &p, Sut &sut);
CheckResult page_size_invariance(const Problem &p, Sut &sut);
CheckResult gqa_equals_mha(const Problem &p, Sut &sut);
CheckResult key_permutation(const Problem &p, Sut &sut);
CheckResult key_duplication(const Problem &p, Sut &sut);
CheckResult extreme_scores_finite(const Problem &p, Sut &sut);
CheckResult zero_query_counts_keys(const Problem &p, Sut &sut);
CheckResult dyadic_exact(const Problem &p, Sut &sut);
CheckResult any_partition_count(const Problem &p, Sut &sut);
CheckResult declared_order(const Problem &p, Sut &sut);
CheckResult more_partitions_than_keys(const Problem &p, Sut &sut);
CheckResult cascade_equals_flat(const Problem &p, Sut &sut);
CheckResult q_len_equals_decode(const Problem &p, Sut &sut);
CheckResult page_lists_equal_table(const Problem &p, Sut &sut);
CheckResult ragged_equals_alone(const Problem &p, Sut &sut);
CheckResult shards_equal_whole(const Problem &p, Sut &sut);
CheckResult window_hides(const Problem &p, Sut &sut);
CheckResult sink_equals_key(const Problem &p, Sut &sut);
CheckResult fp8_equals_widened(const Problem &p, Sut &sut);

// Merges.
CheckResult merge_identity(const Problem &p, Sut &sut);
CheckResult merge_commutative(const Problem &p, Sut &sut);
CheckResult merge_associative(const Problem &p, Sut &sut);
CheckResult merge_any_tree(const Problem &p, Sut &sut);
CheckResult merge_any_order(const Problem &p, Sut &sut);
CheckResult merge_in_place(const Problem &p, Sut &sut);

} // namespace assay
