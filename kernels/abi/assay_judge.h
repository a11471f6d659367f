/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * The verdict on tensors that somebody already holds: a test, a dump, an engine. Given what an
 * attention kernel read and what it wrote, says for every output element whether it lies in the
 * interval that every kernel of the named arithmetic must hit (oracle/BOUNDS.md). Needs no kernel,
 * no case and no device; all arrays are host memory.
 *
 * Calls are thread-safe. They read the arrays and keep nothing of them. `struct_size` is sizeof the
 * struct in the header of the caller: structs of earlier headers are continued by zeros, and nothing
 * is written behind a report of one.
 */
#ifndef ASSAY_JUDGE_H_
#define ASSAY_JUDGE_H_

#include <stdint.h>

#include "plugin.h" /* assay_dtype, assay_arithmetic, assay_lse_base */

#ifdef __cplusplus
extern "C" {
#endif

/** Element types of index arrays, masks and int8 caches, beside those of assay_dtype. */
enum { ASSAY_INT32 = 32, ASSAY_INT64 = 33, ASSAY_UINT8 = 34, ASSAY_INT8 = 35 };

/** An array in host memory, with any strides. */
typedef struct assay_array {
  const void *data;            /**< null: the array is not given */
  int32_t dtype;               /**< assay_dtype, ASSAY_INT32 or ASSAY_INT64 */
  int32_t dims;                /**< 1 .. 4 */
  int64_t shape[4], stride[4]; /**< in elements */
} assay_array;

/** What the LSE of a row without keys must be. */
typedef int32_t assay_empty_lse;
enum { ASSAY_EMPTY_MINUS_INF = 0, ASSAY_EMPTY_PLUS_INF = 1, ASSAY_EMPTY_EITHER = 2 };

/**
 * Attention over a cache in pages. Query row t of request r stands at position
 * p = seq_lens[r] - n + t of its n query rows (bottom-right), and sees the keys
 * max(0, p - window_left) .. min(p + window_right, seq_lens[r] - 1), where a window of -1 has no
 * end; causal is a window_right of 0. Logits as in assay.h. A dense cache [batch, tokens, heads, dim]
 * is one page a request without a table; a ragged one [tokens, heads, dim] is pages of one token.
 */
typedef struct assay_judge_attention_params {
  uint32_t struct_size;
  int32_t causal;  /**< 1: no key behind the row's own position */
  assay_array out; /**< [rows, heads, v_dim], fp16, bf16, fp32 or fp8 */
  /** [rows, heads, head_dim], fp16, bf16 or with fp8 k the same fp8, as the kernel read it */
  assay_array q;
  assay_array k;   /**< [pages, slots, kv_heads, head_dim], as q, fp8 or int8 */
  assay_array v;   /**< [pages, slots, kv_heads, v_dim], as k; may be a slice of it */
  assay_array lse; /**< [rows, heads] fp32; may be missing */
  /** [requests, columns], or [entries] with page_indptr. Entries behind a request's keys are not
      read. Missing: request r has page r. */
  assay_array page_table;
  assay_array v_page_table; /**< of V, in the same shape; missing: page_table */
  assay_array page_indptr;  /**< [requests + 1]: request r has the entries from page_indptr[r] on */
  assay_array seq_lens;     /**< [requests] keys, those of its own query rows included */
  assay_array qo_indptr;    /**< [requests + 1]; missing: rows / requests query rows each */
  /** Of fp8 and int8 K and V, fp32: [1] or [kv_heads]; missing: 1. Or of each token, [pages, slots,
      kv_heads], and of blocks of a token's elements, [.., blocks]: then both operands of the products are
      in the type of q. */
  assay_array k_scale, v_scale;
  assay_array o_scale; /**< fp8 out only: [1] fp32, O is out times it; missing: 1 */
  assay_array q_scale; /**< fp8 q only: [1], [heads] or [rows, heads] fp32; missing: 1 */
  assay_array alibi_slopes, sinks; /**< [heads] fp32, natural base; may be missing */
  /** ASSAY_UINT8, for every query of a request and every key of it, request after request: 0 hides the
      key, beside what causal and the window hide. Not with ALiBi. Missing: none is hidden so. */
  assay_array mask;
  /** [requests + 1] where each request's part begins; missing: side by side */
  assay_array mask_indptr;
  float sm_scale, logits_soft_cap;   /**< softcap 0: none */
  int32_t window_left, window_right; /**< keys beside the own position; -1: all */
  assay_lse_base lse_base;
  assay_empty_lse empty_lse;
  /** Rows of requests to judge, each with all heads: 0 all, else that many: the first, the last,
      those of the longest request, and others spread evenly. */
  int32_t max_rows;
  int32_t threads; /**< 0: as many as there are processors */
  assay_arithmetic arithmetic;
} assay_judge_attention_params;

/** A merge of states: row r of `out` merges o[s][r], lse[s][r] of every state s. */
typedef struct assay_judge_merge_params {
  uint32_t struct_size;
  int32_t max_rows;   /**< as above */
  assay_array out;    /**< [rows, heads, dim], fp16, bf16 or fp32 */
  assay_array lse;    /**< [rows, heads] fp32; may be missing */
  assay_array o_in;   /**< [states, rows, heads, dim], the type of out */
  assay_array lse_in; /**< [states, rows, heads] fp32 */
  assay_lse_base lse_base;
  assay_empty_lse empty_lse;
  int32_t threads;
  int32_t reserved; /**< 0 */
  assay_arithmetic arithmetic;
} assay_judge_merge_params;

typedef int32_t assay_judge_verdict;
enum {
  ASSAY_JUDGE_INSIDE = 0,
  ASSAY_JUDGE_OUTSIDE = 1,
  ASSAY_JUDGE_UNDECIDED = 2 /**< the reference is not known sharply enough; never a pass */
};

/** What |got - exact| is allowed, by cause; they sum to `allowed`. The LSE has zeros; a whole row has all
    that differs from element to element in output_rounding and accumulation. */
typedef struct assay_judge_budget {
  double weights, p_rounding, accumulation, normalisation, merge, output_rounding, flush;
  double reserved[5]; /**< 0 */
} assay_judge_budget;

/** The element with the largest error beside what is allowed. */
typedef struct assay_judge_element {
  int32_t row, head, dim; /**< dim -1: the LSE; -2: O of the whole row, along the direction u of its
                               error, of length 1: `got` is u.out and `exact` u.O. No set of
                               roundings of the weights makes an error that long, though each element
                               alone is inside */
  int32_t reserved;
  double got, exact, radius; /**< the exact value lies within radius of `exact` */
  double allowed, ratio;     /**< ratio: |got - exact| / allowed */
  assay_judge_budget budget;
  char reason[64]; /**< why it is not inside; empty where it is */
} assay_judge_element;

typedef int32_t assay_judge_order_state;
enum {
  ASSAY_JUDGE_ORDER_NOT_LOOKED_FOR = 0, /**< no weight is rounded, keys are masked, or on a GPU */
  ASSAY_JUDGE_ORDER_NONE = 1,           /**< no known order explains the outputs */
  ASSAY_JUDGE_ORDER_FOUND = 2
};

/** The order of keys that explains the outputs of most rows, found by trying those that kernels are
    known to have. What the rest of this struct says is of a (row, head) as one. */
typedef struct assay_judge_order {
  assay_judge_order_state state;
  int32_t tile, splits, states; /**< keys of a tile; splits of the longest row; states of a split */
  int32_t backwards;            /**< 1: tiles of a split from its last to its first */
  int32_t reserved;             /**< 0 */
  uint64_t pairs;               /**< that an order can be told from */
  uint64_t explained;           /**< of those, by the order that was found for their row */
  /** Those that no known order explains, while the order of their row is known from its other heads. No
      findings: an order that nobody knew would explain them. */
  uint64_t doubts;
  int32_t doubt_row, doubt_head; /**< the one farthest from its row's order; -1: none */
  double doubt_ratio;            /**< its error, in what that order allows */
  char words[256];               /**< the above in words; empty where no order was looked for */
} assay_judge_order;

typedef struct assay_judge_report {
  uint32_t struct_size;
  assay_judge_verdict verdict; /**< the worst of all elements */
  uint64_t elements, claimed;  /**< looked at; of those, the ones that anything is said about */
  uint64_t findings;           /**< elements that are not inside */
  uint64_t certified_rows;     /**< references recomputed in interval arithmetic */
  int64_t rows, rows_judged;
  double worst_ratio, worst_ratio_lse; /**< of O and of the LSE; NaN: nothing of it was judged */
  double median_budget;                /**< allowed / |O|, to the next quarter of a power of two */
  assay_judge_element worst; /**< the one farthest outside; inside, the one nearest to its limit */
  double worst_ratio_row;    /**< of whole rows, along their errors; NaN: none was judged as one */
  assay_judge_order order;
} assay_judge_report;

/**
 * ASSAY_OK with a filled report, whatever the verdict; ASSAY_INVALID_ARGUMENT for arrays that do not
 * fit each other, ASSAY_UNSUPPORTED for types that are not judged. assay_judge_last_error() then
 * names the argument and what was expected.
 */
assay_status assay_judge_attention(const assay_judge_attention_params *params,
                                   assay_judge_report *report);
assay_status assay_judge_merge(const assay_judge_merge_params *params, assay_judge_report *report);

/** How small a mistake the bounds of a call still show, each alone, a kernel's own errors aside. NaN: not
    known, as of calls with an LSE alone to judge, or where no claim is made. */
typedef struct assay_judge_sharpness {
  uint32_t struct_size;
  int32_t reserved; /**< 0 */
  double scaling;   /**< O times 1 + this; seen in the row that shows it best */
  double sm_scale;  /**< sm_scale times 1 + this; likewise */
  double
      lost_weight; /**< a lost key with that share of a row's weights; seen in half of the rows */
} assay_judge_sharpness;

/** What a pass of assay_judge_attention is worth: of up to 8 (row, head) pairs, and one in 16. Looks at no
    output; all arrays are host memory. */
assay_status assay_judge_attention_sharpness(const assay_judge_attention_params *params,
                                             assay_judge_sharpness *sharpness);

/**
 * These judge the same where out, q, k, v and lse (of a merge out, lse, o and lse_in) are memory of one GPU;
 * every other array stays host memory. In libassay_judge_cuda alone. Reads the arrays where they
 * lie, behind what `stream` (a cudaStream_t) holds; returns when it is done. Every row is judged:
 * max_rows is ignored. What a GPU does not judge (head_dim above 576, a scale, slope or sink about
 * which nothing is claimed) is read from there in pieces, and judged here. Up to 64 (row, head)
 * pairs are read as well and judged here in more directions, the nearest to their bound first.
 */
assay_status assay_judge_attention_cuda(const assay_judge_attention_params *params, void *stream,
                                        assay_judge_report *report);
assay_status assay_judge_merge_cuda(const assay_judge_merge_params *params, void *stream,
                                    assay_judge_report *report);

/** Of this thread's last failed call; empty after a success. Valid until the next call. */
const char *assay_judge_last_error(void);

#ifdef __cplusplus
}
#endif

#endif /* ASSAY_JUDGE_H_ */
