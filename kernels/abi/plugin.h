/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * The table through which the harness reaches kernels: ours and a third party's alike. A plugin is
 * a shared library that exports assay_plugin_entry(); the library's own kernels fill the same table
 * (kernels/api/registry.cpp).
 */
#ifndef ASSAY_ABI_PLUGIN_H_
#define ASSAY_ABI_PLUGIN_H_

#include "assay.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Which parameter struct a kernel takes. */
typedef int32_t assay_family;
enum {
  ASSAY_FAMILY_PAGED = 0,       /**< assay_paged_params */
  ASSAY_FAMILY_CASCADE = 1,     /**< assay_cascade_params */
  ASSAY_FAMILY_MERGE_STATE = 2, /**< assay_merge_state_params */
  ASSAY_FAMILY_MERGE_STATES = 3 /**< assay_merge_states_params */
};

typedef int32_t assay_determinism;
enum {
  ASSAY_DETERMINISM_NONE = 0,
  ASSAY_DETERMINISM_RUN_TO_RUN = 1 /**< same inputs, same bits, on one device */
};

/** What a number is rounded to, to nearest even with subnormals; tf32 in either way. */
typedef int32_t assay_format;
enum {
  ASSAY_FORMAT_FP32 = 0, /**< as it was computed: no rounding */
  ASSAY_FORMAT_CALL = 1, /**< of P: what both products take, the dtype of the call, with fp8 KV
                              fp16 or kv_format; of the row sum see sum_format */
  ASSAY_FORMAT_FP16 = 2,
  ASSAY_FORMAT_BF16 = 3,
  ASSAY_FORMAT_E4M3 = 4,
  ASSAY_FORMAT_E5M2 = 5,
  ASSAY_FORMAT_TF32 = 6 /**< 10 fraction bits, cut off or rounded, and the exponents of fp32 */
};

typedef int32_t assay_exponential;
enum {
  /** Of natural-base arguments, whatever it does inside: beside its declared error an exponent, and
      what a logarithm returns, may be off by a conversion of the base, 1.25 2^-24 of itself. */
  ASSAY_EXP_NATURAL = 0,
  /** Of base-2 logits, whose scale is one product with log2 e, and exact where such a logit and its
      distances are integers. */
  ASSAY_EXP_BASE2 = 1
};

typedef int32_t assay_accumulator;
enum { ASSAY_ACCUMULATOR_FP32 = 0, ASSAY_ACCUMULATOR_FP64 = 1 };

/**
 * The arithmetic a kernel declares; the oracle's error budget is computed from it and nothing else.
 * All errors are upper limits. The harness refuses a kernel with a field outside its range: errors
 * from 0 to below 1; mma_block 0 .. 1024; mma_fraction_bits 0 .. 1022, and with blocks
 * 2^F > mma_block + 1; p_format and q_format one of assay_format; kv_format FP32, CALL, FP16, BF16 or
 * TF32; the other formats FP32, CALL, FP16 or BF16;
 * sum_depth and max_parallel_states 0 .. 2^20; tile_tokens 0 .. 2^30; max_splits 0 .. 2^16, and
 * merge_stages 0 .. 16, 0 only where max_splits is 0; p_scale_log2 0 .. 15, with weights in e4m3
 * 0 .. 8; rounded_before_scale 0 or 1. 0 tokens or states (merges) count as 1. A limit beyond the keys
 * of a row costs no more than that many: an honest 2^20 is as good as the exact number.
 */
typedef struct assay_arithmetic {
  int32_t mma_block;         /**< products summed per block-FMA step (0: scalar fp32 FMA chain) */
  int32_t mma_fraction_bits; /**< F: addends truncated at 2^(e_max - F) */
  assay_format p_format;     /**< softmax weights, in 0 .. 1 and scaled by 2^p_scale_log2, meet V
                                  rounded to it; see also assay_key_tile */
  assay_format sum_format; /**< the row sum of a state. FP32: of the weights as they were computed.
                                  CALL: of the weights as they meet V, rounded to p_format, added in
                                  fp32. FP16, BF16: weights enter it, and every addition and rescaling
                                  leaves it, rounded to it. Splits and stored states are merged in
                                  fp32 */
  assay_exponential exponential;
  int32_t sum_depth;           /**< additions on the longest path of a row sum that a tile adds,
                                    to a sum of its own or to the running one */
  double q_abs_error;          /**< of an element of Q as the product with K sees it, with any dtype
                                    and any KV: per largest |q| of its query row (one token, one
                                    head) */
  double exp2_rel_error;       /**< of the exponential, relative */
  double log2_abs_error;       /**< of the logarithm in base 2, per (1 + |result|) */
  double rcp_rel_error;        /**< of the final reciprocal, relative */
  double tanh_abs_error;       /**< of the tanh of the softcap, absolute */
  int32_t tile_tokens;         /**< keys between two updates of the running maximum */
  int32_t max_parallel_states; /**< states merged inside one block before a split is stored */
  int32_t max_splits;   /**< parts of a row (in a cascade, of one of its segments) that become
                             normalised (O, LSE) and are merged as such; 0: there are none. With
                             ASSAY_BATCH_FIXED, a num_splits above 0 is a limit as well */
  int32_t merge_stages; /**< such merges that a part passes through, one after another */
  assay_format
      partial_format;        /**< O of a part is stored rounded to it before the first stored_merges
                                    of those merges; later ones read fp32. Its LSE is fp32. CALL: the
                                    dtype of O */
  int32_t stored_merges;     /**< 0 with partial_format FP32; else 1 .. merge_stages */
  assay_format score_format; /**< a score is rounded to it once, before or after its scale, before
                                    softcap and ALiBi. CALL: as p_format's */
  int32_t p_scale_log2; /**< weights are multiplied by 2^this before they are rounded to p_format,
                                    and the product with V by its inverse: fp8's range is used */
  int32_t rounded_before_scale;  /**< 1: O is rounded to its dtype, then multiplied by v_scale and
                                     rounded again; 0: rounded once */
  assay_accumulator accumulator; /**< of both products and the row sum, rescaling included. FP64
                                      where mma_block is 0 only */
  assay_format kv_format;      /**< fp8 K and V, times their scales, and K and V of fp32 are rounded
                               to it before the products, which then take it. CALL: the dtype of Q.
                               FP32: they are widened as they are, and the scales meet scores and
                               outputs */
  assay_format q_format;       /**< Q, as it is or times what scales its scores, log2 e included, in
                               fp32, is rounded to it before the product with K, which takes that.
                               CALL: as p_format's */
  assay_format product_format; /**< each product of an element of Q and one of K is rounded to it;
                               they are then added one by one. CALL: as p_format's */
  assay_format qk_sum_format;  /**< each such product and each partial sum of a score is rounded to
                               it. CALL: as p_format's */
  assay_format output_format;  /**< O is rounded to it once, before, between or after its scales,
                               before it is rounded to its dtype. CALL: the dtype of Q */
  int32_t reserved[11];        /**< 0: room for what later versions declare */
} assay_arithmetic;

/** Whether a row's bits may follow anything but its own inputs and the parameters of the call. */
typedef int32_t assay_batch_invariance;
enum {
  ASSAY_BATCH_NONE = 0,  /**< they may follow the other requests and heads of the call */
  ASSAY_BATCH_FIXED = 1, /**< they do not where the call says how often to split: num_splits > 0 */
  ASSAY_BATCH_ALWAYS = 2 /**< they never do, but for the hint even_lengths */
};

/** What of "not a number" in assay.h a kernel keeps; sums of these bits. */
typedef int32_t assay_nan_contract;
enum {
  ASSAY_NAN_VALUES = 1, /**< of values, and of the o of stored states */
  ASSAY_NAN_SCORES = 2  /**< of scores, and of the LSE of stored states */
};

/** What a kernel can take and does beside computing; sums of these bits. */
typedef uint32_t assay_capabilities;
enum {
  /** Each function refuses what assay.h forbids in what it looks at, as far as a host sees: pointers,
      strides, ranges. Without it, it may crash. */
  ASSAY_CHECKS_ARGUMENTS = 1,
  ASSAY_RAGGED_QUERIES = 2, /**< a paged kernel takes qo_indptr; without it, it never gets it */
  ASSAY_PAGE_LISTS =
      8,           /**< an attention kernel takes page_indptr and page_table_stride_head; without
                           it, it never gets either */
  ASSAY_SHARDS = 4 /**< a paged kernel takes dcp_world_size > 0; without it, it never does */
};

/** A dtype for ASSAY_TARGET_SIMT only, with which the harness verifies kernels: exact numbers modulo
    2^61 - 1 behind handles (kernels/arch/simt/field.h). It needs a stream, which holds them; handles
    0, 1, 2 are zero, one, -inf. Plain attention, head_dim 64, no fp8: q, k, v are 16-bit words, out
    and lse 32-bit handles. Merges: 32-bit handles throughout. The softmax scale is the number whose
    residues are the bits of fl(sm_scale * log2 e). */
enum { ASSAY_FIELD61 = 64 };

/** A status of ASSAY_TARGET_SIMT only: the executor stopped the kernel and has a report. */
enum { ASSAY_HAZARD = 6 };

/**
 * One step of a kernel over a row's keys: keys [begin, end) of the cache of cascade level `level` (0
 * for paged attention; keys a query token does not see may be included), scored against one running
 * maximum. Tiles of one (level, split, state) follow each other in order; the states of a split are
 * merged in the block, splits and levels through (O, LSE).
 */
typedef struct assay_key_tile {
  int32_t level, split, state;
  int32_t begin, end;
  int32_t p_parts; /**< of a rounded P, 2: what rounding took from a weight, rounded itself, meets V
                      too, in an accumulator of its own that joins the other at the end of the
                      split; 0 or 1: it is lost */
} assay_key_tile;

/** No function may be null where nothing says that it may. */
typedef struct assay_kernel {
  uint32_t struct_size; /**< sizeof(assay_kernel), the same for every kernel of the array */
  const char *name;     /**< e.g. "paged_attention_v2": 1 to 100 printable ASCII characters without
                           space, '/' and '#'; unique within a plugin and target */
  assay_family family;
  assay_target target;
  assay_determinism determinism;
  assay_batch_invariance batch_invariance;
  assay_nan_contract nan_contract;
  assay_arithmetic arithmetic;
  assay_status (*supports)(const void *params);
  assay_status (*workspace_size)(const void *params, uint64_t *bytes); /**< null: needs none */
  assay_status (*run)(const void *params);
  const char *(*last_error)(void); /**< of this thread's last refusal; a null message means "" */
  /** The declared order of the keys of every request, for all its query heads and tokens: writes
     [batch + 1] ascending offsets from 0 to `first`, and of the tiles, request after request, those
     that fit into `capacity`. Request r has the tiles first[r] .. first[r + 1] - 1. Pointers in
     params are host pointers here; o, lse, workspace and plan are null.
     May be null: the order is not declared and only order-free bounds apply. */
  assay_status (*key_order)(const void *params, assay_key_tile *tiles, int64_t capacity,
                            int64_t *first);
  /** Paged kernels that can be planned apart, once per decode step: the bytes of a call's plan, and
     the planning, into the plan that params names. Both null: it plans inside its calls. */
  assay_status (*plan_size)(const void *params, uint64_t *bytes);
  assay_status (*plan)(const void *params);
  assay_capabilities capabilities; /**< sums of these bits */
} assay_kernel;

/**
 * The first three fields stay where they are in every version, so that a table of another one is
 * recognised before anything else of it is read. A harness serves plugins of the minor versions from
 * 13 to its own: kernels of an earlier header are shorter, and what they end before counts as zero.
 */
typedef struct assay_plugin {
  uint32_t struct_size;          /**< sizeof(assay_plugin) */
  uint32_t abi_major, abi_minor; /**< ASSAY_ABI_MAJOR, ASSAY_ABI_MINOR of the header built with */
  const char *name;              /**< 1 to 100 printable ASCII characters */
  int32_t num_kernels;           /**< 0 .. 4096 */
  const assay_kernel *kernels;   /**< [num_kernels]; null only with none */
} assay_plugin;

/** The one symbol a plugin exports. Returns null when it cannot serve abi_major. */
typedef const assay_plugin *(*assay_plugin_entry_fn)(uint32_t abi_major);
#define ASSAY_PLUGIN_ENTRY "assay_plugin_entry"

/** This library's own kernels, for every target it was built with. */
const assay_plugin *assay_plugin_entry(uint32_t abi_major);

#ifdef __cplusplus
}
#endif

#endif /* ASSAY_ABI_PLUGIN_H_ */
