/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * The C ABI of assay's decode-attention kernels.
 *
 * Conventions, for every entry point:
 *  - Parameters are one struct by pointer; `struct_size` comes first and is sizeof the struct in the
 *    header of the caller. A library takes the structs of every earlier version from 0.13 on; what a
 *    caller's struct ends before counts as zero. Later versions add fields at the end of structs, and
 *    in the reserved words of those without a size; zero there always means what it meant before.
 *  - Strides are in elements, int64, >= 0; the innermost (head_dim) stride is always 1. Those of q,
 *    k, v, out, o_a, o_b and o_in are multiples of 8, in fp32 too. Inputs may have stride 0. A stride
 *    of an output is at least head_dim (out) or 1 (lse) where there is more than one along it.
 *  - q, k, v, out, o_a, o_b, o_in, workspace and plan are 16-byte aligned, other arrays 4-byte. With
 *    an empty batch (num_rows 0) they may be null, but for the levels of a cascade.
 *  - Outputs and scratch (out, lse, workspace, plan) overlap neither each other nor an input, but for
 *    what assay_merge_state allows; inputs may overlap each other. Where a field says "refused",
 *    the call looks for equal pointers; no other overlap is checked.
 *  - `target` says where the pointers live and who executes: ASSAY_TARGET_CUDA (device pointers,
 *    `stream` is a cudaStream_t) or ASSAY_TARGET_SIMT (host pointers, `stream` is an
 *    assay::simt::Stream* or null).
 *  - A status other than ASSAY_OK means that nothing was launched; assay_last_error() then names
 *    the argument and its limit. An empty batch is a success that launches nothing.
 *  - No entry point allocates, synchronises or reads device data on the host: every call can be
 *    captured in a CUDA graph and replayed with other lengths within the planned capacity.
 *  - Page ids inside the live part of a page table are trusted (an id outside the pool is an
 *    out-of-bounds access); the SIMT executor reports them.
 *  - Tokens at or past seq_lens[b], pages no live token maps to, and page-table entries past
 *    ceil(seq_lens[b] / page_size) are never used; whatever they hold cannot change a result.
 */
#ifndef ASSAY_ABI_ASSAY_H_
#define ASSAY_ABI_ASSAY_H_

#include <stdint.h>
#include <string.h>

#define ASSAY_ABI_MAJOR 0
#define ASSAY_ABI_MINOR 14

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t assay_status;
enum {
  ASSAY_OK = 0,                  /**< done (asynchronously on CUDA) */
  ASSAY_INVALID_ARGUMENT = 1,    /**< an argument is null, misaligned or out of its range */
  ASSAY_UNSUPPORTED = 2,         /**< well-formed, but not in this library or on this device */
  ASSAY_WORKSPACE_TOO_SMALL = 3, /**< workspace or plan; the message names the bytes needed */
  ASSAY_CAPACITY_EXCEEDED = 4,   /**< more blocks, or tiles of a plan, than 2^31 - 1; what that
                                      allows is said with the sizes of a call */
  ASSAY_LAUNCH_FAILED = 5,       /**< the CUDA runtime refused the launch */
  ASSAY_INTERNAL = 7             /**< a defect in this library */
};

typedef int32_t assay_target;
enum { ASSAY_TARGET_SIMT = 0, ASSAY_TARGET_CUDA = 1 };

typedef int32_t assay_dtype;
enum { ASSAY_FP16 = 0, ASSAY_BF16 = 1, ASSAY_FP32 = 2, ASSAY_E4M3 = 3, ASSAY_E5M2 = 4 };

/** Base of every LSE read or written by a call. */
typedef int32_t assay_lse_base;
enum { ASSAY_LSE_BASE_E = 0, ASSAY_LSE_BASE_2 = 1 };

/**
 * Paged KV cache: one pool of pages for K and one for V, addressed through one page table.
 * Token t of row r lives in page list_r[t / page_size], slot t % page_size, where list_r begins at
 * entry r * page_table_stride of page_table, or with page_indptr (CSR, as FlashInfer's
 * paged_kv_indptr and paged_kv_indices) at entry page_indptr[r]. The list of kv head h lies h times
 * page_table_stride_head further.
 * NHD and HND layouts are both expressed by strides; K and V strides are independent.
 */
typedef struct assay_paged_kv {
  const void *k; /**< pool, KV dtype of the call; null allowed when max_pages is 0 */
  const void *v; /**< likewise */
  /** Elements, multiples of 8, with fp8 of 16; of a page and a token below 2^31. */
  int64_t k_stride_page, k_stride_token, k_stride_head;
  int64_t v_stride_page, v_stride_token, v_stride_head;
  const int32_t *page_table;  /**< [rows, max_pages], or lists one behind the other; only live
                                  entries are read; null allowed when max_pages is 0 */
  const int32_t *seq_lens;    /**< [rows] live tokens, 0 .. max_pages * page_size */
  int64_t page_table_stride;  /**< entries between rows, >= max_pages; ignored with page_indptr */
  const int32_t *page_indptr; /**< [rows + 1] ascending, may be null: row r has the entries
                                   page_indptr[r] .. page_indptr[r + 1] - 1, those of its live
                                   tokens at least and max_pages at most. The host never reads it;
                                   that it is given is an option of the call, also to a planner */
  int64_t page_table_stride_head; /**< entries between the lists of two kv heads, >= 0; 0: a row has
                                       one list for all of them. rows * page_table_stride (with
                                       page_indptr 2^31) and this times the heads are at most 2^32
                                       together */
  int32_t rows;                   /**< requests, or segments of a cascade level; 0 .. 2^24 */
  int32_t max_pages;              /**< columns of the page table, >= 0; bounds every length:
                                  max_pages * page_size is at most 2^30 */
  int32_t page_size;              /**< tokens per page, 1 .. 2^30 */
  int32_t reserved[9];            /**< 0: room for later versions, as calls hold this struct */
} assay_paged_kv;

/**
 * Paged decode attention: v1 (one pass) and v2 (split-KV).
 *
 * A request holds q_len query tokens, its newest: query token i sits at position seq_lens[r] -
 * q_len + i and sees the keys at positions max(0, p - window_left) .. p (all up to p when
 * window_left is -1). A token at a negative position sees nothing. With q_len 1 and no window that
 * is every live key.
 *
 * Ragged queries: with qo_indptr request r holds the n_r = qo_indptr[r + 1] - qo_indptr[r]
 * tokens of q, out and lse from number qo_indptr[r] on, each of n_r between 0 and q_len, and n_r
 * takes the place of q_len above. Token t of the call lies at t times the token stride, and the first
 * is qo_indptr[0], which need not be 0. Nothing is written for tokens that there are not. The host
 * never reads qo_indptr; that it is given is an option of the call, also to a planner.
 *
 * Shards (decode context parallelism, DCP): with dcp_world_size > 0 the keys of a request lie on so
 * many ranks, dcp_interleave tokens in turn on each: token t on rank (t / dcp_interleave) mod
 * dcp_world_size. The cache holds those of dcp_rank, in their order, and kv.seq_lens[r] is how many
 * of the request's global_lens[r] tokens those are; it may be 0. Positions are those of all tokens:
 * global_lens[r] takes the place of seq_lens[r] above, and j and p below count so. The result is
 * the state of the keys on this rank, with LSE -inf where a query token sees none of them. The
 * states of all ranks merge into the state of all keys (assay_exchange_states, assay_merge_states).
 * A sink counts in every call that has it: sinks are given on one rank, and null on the others. The
 * host never reads global_lens. That dcp_world_size is above 0 is an option of the call, also to a
 * planner.
 *
 * The natural-base logit of a visible key at position j is
 *     x = sm_scale * k_scale * (q . k)
 *     x = logits_soft_cap * tanh(x / logits_soft_cap)   when logits_soft_cap > 0
 *     x = x + alibi_slopes[head] * (j - p)              when alibi_slopes is given
 * and O = sum_j softmax(x)_j v_scale v_j. A sink is one more key per row with logit sinks[head] and
 * value 0: it takes part in the sum and in the LSE, once however the row is split.
 *
 * enable_pdl (programmatic dependent launch, PDL; sm_90 on, elsewhere the same as 0): the call
 * loads its plan and the first keys and values while the kernel in front of it in the stream ends.
 * That kernel may write q and the K and V of each request's q_len newest tokens, and may read and
 * write out, lse and the workspace. Everything else the call reads (older K and V, page_table,
 * seq_lens, global_lens, qo_indptr, plan, scales, slopes, sinks) must have been written by kernels
 * that finished before that kernel began. v2 without a plan runs its planner first and starts its
 * attention late.
 *
 * Sizes: a head tile is up to 16 (with head_dim 256: 8) of the q_len * num_qo_heads / num_kv_heads
 * query rows of a (request, kv head). A call has at most 2^31 - 1 of them. Where num_splits > 0
 * fixes how every row is split (v2), num_splits times as many count. v2 has a plan's limit, too.
 */
typedef struct assay_paged_params {
  uint32_t struct_size;
  assay_target target;
  assay_dtype dtype;    /**< q, out: ASSAY_FP16 or ASSAY_BF16 */
  assay_dtype kv_dtype; /**< k, v: same as dtype, or ASSAY_E4M3 or ASSAY_E5M2 */
  assay_lse_base lse_base;
  int32_t batch;         /**< requests, 0 .. 2^24; equals kv.rows */
  int32_t q_len;         /**< query tokens of every request, with qo_indptr the most of one;
                             1 .. ASSAY_MAX_Q_LEN */
  int32_t num_qo_heads;  /**< multiple of num_kv_heads, up to 2^20 */
  int32_t num_kv_heads;  /**< 1 .. 2^20 */
  int32_t head_dim;      /**< 64, 128 or 256 */
  float sm_scale;        /**< softmax scale, finite, > 0 */
  float logits_soft_cap; /**< finite, 0 (none) or > 0 */
  int32_t window_left;   /**< keys in front of its own that a query token sees at most, up to
                            2^30 - 1; -1: all. A zeroed struct has 0, the own key alone: begin
                            with assay_paged_params_init */
  int32_t num_splits;    /**< v2: > 0 forces that many splits of every row, up to 65536; 0: balanced
                            plan. v1: ignored */
  int32_t enable_pdl;    /**< 1: may begin while the kernel in front of it in the stream still runs
                            (see above); 0: begins when that has finished */
  int32_t even_lengths; /**< v1: 1 when the lengths of the batch are alike (the longest at most 1.25
                             times the mean); rows then may go to fewer warps each. A hint: with any
                             lengths the result is right, and 0 keeps a row's bits independent of
                             the batch */
  const void *q;        /**< [batch, q_len, num_qo_heads, head_dim]; with qo_indptr
                      [tokens, num_qo_heads, head_dim], and so out and lse */
  /** Multiples of 8; that of a token is ignored when q_len is 1, and with qo_indptr that of the
     batch in its place, here and below. */
  int64_t q_stride_batch, q_stride_token, q_stride_head;
  void *out; /**< [batch, q_len, num_qo_heads, head_dim]; equal to q, kv.k or kv.v: refused */
  int64_t out_stride_batch, out_stride_token, out_stride_head; /**< multiples of 8 */
  float *lse; /**< [batch, q_len, num_qo_heads] fp32, may be null; -inf for a row without keys */
  int64_t lse_stride_batch, lse_stride_token, lse_stride_head;
  assay_paged_kv kv;
  const float *k_scale; /**< fp8 KV: [1] or [num_kv_heads], finite, > 0; null: 1. Else null */
  const float *v_scale; /**< fp8 KV: [1] or [num_kv_heads], finite; null: 1. Else null */
  int32_t k_scale_stride, v_scale_stride; /**< 0: one per tensor, 1: one per kv head */
  const float *alibi_slopes; /**< [num_qo_heads], finite, may be null; natural-base units */
  const float *sinks;        /**< [num_qo_heads] natural-base logits, finite or -inf; may be null */
  const int32_t *qo_indptr;  /**< [batch + 1] ascending, may be null; see above */
  void *workspace;           /**< v2: scratch, 16-byte aligned, any content; v1: ignored */
  uint64_t workspace_bytes;  /**< at least assay_paged_attention_v2_workspace_size, plan or not */
  void *plan; /**< v2: filled by assay_paged_attention_v2_plan for these shapes, 16-byte aligned;
                 null plans inside the call. Of a planning call: where the plan goes, any content */
  uint64_t plan_bytes; /**< of a plan: at least assay_paged_attention_v2_plan_size */
  void *stream;
  const int32_t *global_lens; /**< [batch] tokens of each request on all ranks, up to 2^30; null
                                   with dcp_world_size 0 */
  int32_t dcp_world_size;     /**< 0: the cache holds all keys; up to 1024; see shards above */
  int32_t dcp_rank;           /**< 0 .. dcp_world_size - 1; 0 with dcp_world_size 0 */
  int32_t dcp_interleave;     /**< >= 1, times dcp_world_size at most 2^30; 0 with
                                dcp_world_size 0 */
  int32_t reserved;           /**< 0 */
} assay_paged_params;

/** What a call begins with: zeros, but for struct_size and for window_left, which is -1. */
static inline assay_paged_params assay_paged_params_init(void) {
  assay_paged_params params;
  memset(&params, 0, sizeof params);
  params.struct_size = sizeof params;
  params.window_left = -1;
  return params;
}

enum { ASSAY_MAX_Q_LEN = 8 };

/** What assay_paged_attention_choose recommends. */
typedef struct assay_paged_choice {
  int32_t version;      /**< 1 or 2 */
  int32_t even_lengths; /**< for assay_paged_params */
  int32_t reserved[6];  /**< 0 */
} assay_paged_choice;

/** @page planner The planner of paged_attention_v2
 *
 * The planner of paged_attention_v2, assay_paged_attention_v2_plan: reads kv.seq_lens on the
 * device, writes a plan for all layers of a decode step (host and device write the same bytes). It
 * takes the params of any call that the plan is for, and checks their shapes and options as that
 * call does; but of pointers it looks at kv.seq_lens and plan alone, and at no stride. A plan
 * serves lengths up to kv.max_pages * kv.page_size; batch times that up to 2^34 always fits. It
 * holds the counters of the split merge: calls that share it follow each other on one stream.
 */

/** @page tree Tree attention
 *
 * Tree attention: paged attention that finds out which requests share keys, and computes those once
 * for all of them. Takes assay_paged_params, and gives the result of paged attention.
 *
 * assay_tree_attention_plan reads page_table and seq_lens on the device: requests whose page tables
 * begin with the same pages share the keys in them, wherever in the batch they are, in a tree of up
 * to 4 levels (a prefix of all, of a part of them, and so on). It writes a plan that every layer of
 * the same decode step can reuse, with params of any of its calls: q, out, lse, workspace and what
 * they point to are not looked at, nor does the plan depend on scale, softcap, slopes or sinks. A
 * call without a plan plans inside. Calls that share a plan must follow each other on one stream.
 * Sizes as for v2.
 *
 * assay_tree_attention_plan_lengths plans again where lengths have only grown: plan holds what one
 * of the two planners wrote for these shapes, options and requests, and the pages of what they
 * share are the same. The tree stays, and all other keys are dealt out by the new lengths: pages
 * that have filled up since are private until assay_tree_attention_plan runs again. Of pointers it
 * looks at kv.seq_lens and plan alone, and at no stride.
 *
 * num_splits 0: keys are shared as far as a model of bytes and work says that it pays; a batch that
 * shares nothing is computed as in paged_attention_v2. num_splits > 0: all that can be shared is,
 * the longest part of the tree in so many splits of whole tiles (128 keys, 64 with head_dim 256),
 * others in splits as long, all uncut or private where they do not fit. Private keys: as in v2.
 *
 * Pages are shared for 2 to 1024 requests without window_left, qo_indptr, dcp_world_size and
 * page_table_stride_head on devices with warpgroups (sm_90): those whose keys all query tokens of
 * a request see. Any other call is one of paged_attention_v2 with num_splits 0.
 */

/**
 * Cascade attention: requests share KV segments level by level (prefix of all, of groups, of a
 * tree; usually one private suffix each at the last level). A request attends to the union of the
 * segments that cover it, in any number of levels; a level may leave requests uncovered.
 *
 * Sizes: a level of s > 0 segments has (s + floor((batch * group - s) / R)) * num_kv_heads *
 * num_splits blocks, where group is num_qo_heads / num_kv_heads and R 64 (with head_dim 256: 32),
 * and all levels together have at most 2^31 - 1. With num_splits 0 the shape decides: R is 8 to 128
 * then, and up to 64 splits take the place of num_splits.
 */
typedef struct assay_cascade_level {
  assay_paged_kv kv;             /**< rows = segments of this level */
  const int32_t *segment_indptr; /**< [rows + 1] ascending request offsets, 0 .. batch: segment s
                                      serves requests segment_indptr[s] .. segment_indptr[s+1]-1 */
  int64_t reserved[3];           /**< 0: room for later versions, as levels are an array */
} assay_cascade_level;

enum { ASSAY_MAX_CASCADE_LEVELS = 8 };

typedef struct assay_cascade_params {
  uint32_t struct_size;
  assay_target target;
  assay_dtype dtype; /**< q, k, v, out: ASSAY_FP16 or ASSAY_BF16 */
  assay_lse_base lse_base;
  int32_t batch;        /**< requests, 0 .. 2^24 */
  int32_t num_qo_heads; /**< multiple of num_kv_heads, up to 2^20 */
  int32_t num_kv_heads; /**< 1 .. 2^20 */
  int32_t head_dim;     /**< 64, 128 or 256 */
  float sm_scale;       /**< softmax scale, finite, > 0: the logit is sm_scale * (q . k) */
  int32_t num_levels;   /**< 1 .. ASSAY_MAX_CASCADE_LEVELS */
  int32_t num_splits;   /**< > 0 splits every segment that often, up to 4096; 0: chosen from the
                             shape */
  int32_t reserved;     /**< 0 */
  const void *q;        /**< [batch, num_qo_heads, head_dim] */
  int64_t q_stride_batch, q_stride_head;     /**< multiples of 8 */
  void *out;                                 /**< [batch, num_qo_heads, head_dim] */
  int64_t out_stride_batch, out_stride_head; /**< multiples of 8 */
  float *lse; /**< [batch, num_qo_heads] fp32, may be null; -inf for a row without keys */
  int64_t lse_stride_batch, lse_stride_head;
  const assay_cascade_level *levels; /**< host array [num_levels], copied during the call */
  void *workspace;                   /**< scratch, 16-byte aligned, any content */
  uint64_t workspace_bytes;          /**< at least assay_cascade_attention_workspace_size */
  void *stream;
} assay_cascade_params;

/**
 * Merge two attention states over disjoint key sets: out = softmax-weighted mean of o_a and o_b with
 * weights exp(lse). A state with lse = -inf is the identity: the other side is returned bit for bit
 * whatever its o holds; both empty give out = 0, lse = -inf.
 *
 * In place: out may be o_a or o_b, and lse may be lse_a or lse_b, with the strides of the input that
 * it is; other strides are refused.
 *
 * Sizes: num_rows * num_heads * head_dim is below 2^40.
 */
typedef struct assay_merge_state_params {
  uint32_t struct_size;
  assay_target target;
  assay_dtype dtype; /**< o_a, o_b, out: fp16, bf16 or fp32 */
  assay_lse_base lse_base;
  int32_t num_rows;   /**< >= 0 */
  int32_t num_heads;  /**< 1 .. 2^20 */
  int32_t head_dim;   /**< multiple of 8, 8 .. 512 */
  int32_t reserved;   /**< 0 */
  const void *o_a;    /**< [num_rows, num_heads, head_dim], normalised */
  const float *lse_a; /**< [num_rows, num_heads] */
  const void *o_b;    /**< as o_a */
  const float *lse_b; /**< as lse_a */
  void *out;          /**< [num_rows, num_heads, head_dim] */
  float *lse;         /**< [num_rows, num_heads], may be null */
  /** Those of o_a, o_b and out: multiples of 8, fp32 included. */
  int64_t o_a_stride_row, o_a_stride_head;
  int64_t lse_a_stride_row, lse_a_stride_head;
  int64_t o_b_stride_row, o_b_stride_head;
  int64_t lse_b_stride_row, lse_b_stride_head;
  int64_t out_stride_row, out_stride_head;
  int64_t lse_stride_row, lse_stride_head;
  void *stream;
} assay_merge_state_params;

/**
 * Merge n states per row, in state order. Fixed: state s of row r is o_in[(r * num_states + s)].
 * Ragged: indptr [num_rows + 1] selects states indptr[r] .. indptr[r+1]-1 and num_states is only
 * the upper bound of a row's count, which is not checked: of a row that has more, any may be left
 * out. Zero states give out = 0, lse = -inf. Empty states (lse = -inf) are the identity whatever o
 * holds: a row with one that is not empty gets its o and LSE exactly, but for the sign of a zero
 * and the payload of a NaN.
 *
 * Never in place: an output of one row may lie on a state that another thread has yet to read.
 *
 * Sizes: num_rows * num_heads * head_dim is below 2^40. num_rows * num_heads is at most 2^31 - 1
 * with more than 16 states, and at most 16 times that with 5 to 16.
 */
typedef struct assay_merge_states_params {
  uint32_t struct_size;
  assay_target target;
  assay_dtype dtype; /**< o_in, out: fp16, bf16 or fp32 */
  assay_lse_base lse_base;
  int32_t num_rows;      /**< >= 0 */
  int32_t num_states;    /**< 0 .. 2^24 */
  int32_t num_heads;     /**< 1 .. 2^20 */
  int32_t head_dim;      /**< multiple of 8, 8 .. 512 */
  const void *o_in;      /**< [total_states, num_heads, head_dim]; null allowed with 0 states */
  const float *lse_in;   /**< [total_states, num_heads]; null allowed with 0 states */
  const int32_t *indptr; /**< [num_rows + 1] ascending, or null for fixed num_states */
  void *out;             /**< [num_rows, num_heads, head_dim]; equal to o_in: refused */
  float *lse;            /**< [num_rows, num_heads], may be null; equal to lse_in: refused */
  /** Those of o_in and out: multiples of 8, fp32 included. */
  int64_t o_in_stride_state, o_in_stride_head;
  int64_t lse_in_stride_state, lse_in_stride_head;
  int64_t out_stride_row, out_stride_head;
  int64_t lse_stride_row, lse_stride_head;
  void *stream;
} assay_merge_states_params;

/** Which heads of the merged rows a rank gets. */
typedef int32_t assay_exchange_heads;
enum {
  /** Rank r gets heads r * num_heads / num_ranks .. (r + 1) * num_heads / num_ranks - 1. */
  ASSAY_EXCHANGE_SCATTER = 0,
  ASSAY_EXCHANGE_ALL = 1 /**< every rank gets all of them, with the same bits */
};

#define ASSAY_MAX_RANKS 8

/**
 * Merge the states that several GPUs (ranks) hold of the same rows: decode over a KV cache that is
 * cut along the sequence. Each rank gives the (o, LSE) of its keys, and gets the merged rows of its
 * heads. The result is that of assay_merge_states over the ranks in their order, bit for bit: the
 * same in every run, and on every rank. A rank without keys of a row gives lse = -inf.
 *
 * One kernel a rank: it writes its states into the windows of its peers, waits for theirs, and
 * merges. There is no other traffic and no host. A window is memory of a rank that its peers can
 * write (CUDA IPC, virtual memory management, torch symmetric memory, NCCL windows), 256-byte
 * aligned, of window_bytes or more. Whoever makes the windows fills them with zeros before
 * any rank's first call. They are scratch of these calls: half of each is free for the next call
 * while the peers read the other half, so that nothing is awaited between two calls.
 *
 * All ranks make the same calls in the same order on the same windows. Calls on a window have the
 * same dtype, heads, num_ranks, num_heads, head_dim and max_rows; num_rows may change from call to
 * call. Calls that may run at the same time need windows of their own, and room on the GPU, because
 * warps of a call wait for those of its peers: a call has a warp for each state that a rank merges,
 * 4,096 at most (of more than 4 ranks 2,048), and a multiprocessor has room for 32 (16) of them.
 *
 * A call that waits longer than timeout_ns for a peer ends: bit p of *status is set for every peer
 * p that did not come, rows that needed it are NaN with LSE NaN, and the windows can be used again
 * only after they are filled with zeros on all ranks. *status is never cleared here.
 *
 * Sizes: max_rows * num_heads is at most 2^31 - 1.
 */
typedef struct assay_exchange_params {
  uint32_t struct_size;
  assay_target target;
  assay_dtype dtype; /**< o_in, out and what travels: fp16, bf16 or fp32 */
  assay_lse_base lse_base;
  assay_exchange_heads heads;
  int32_t num_ranks;   /**< 1 .. ASSAY_MAX_RANKS */
  int32_t rank;        /**< 0 .. num_ranks - 1 */
  int32_t num_rows;    /**< >= 0 */
  int32_t num_heads;   /**< of o_in; 1 .. 2^20 */
  int32_t head_dim;    /**< multiple of 8, 8 .. 512 */
  int32_t enable_pdl;  /**< 0 or 1: as in assay_paged_params; the kernel in front may write o_in
                            and lse_in */
  int32_t max_rows;    /**< of all calls on these windows; >= num_rows, and at least 1 */
  const void *o_in;    /**< [num_rows, num_heads, head_dim], normalised */
  const float *lse_in; /**< [num_rows, num_heads] */
  void *out;           /**< [num_rows, heads of this rank, head_dim]; equal to o_in: refused */
  float *lse;          /**< [num_rows, heads of this rank], may be null; equal to lse_in: refused */
  /** Those of o_in and out: multiples of 8, fp32 included. */
  int64_t o_in_stride_row, o_in_stride_head;
  int64_t lse_in_stride_row, lse_in_stride_head;
  int64_t out_stride_row, out_stride_head;
  int64_t lse_stride_row, lse_stride_head;
  void *const *windows;  /**< host array [num_ranks], copied during the call: every rank's window as
                              this rank addresses it, its own among them */
  uint64_t window_bytes; /**< of each; at least assay_exchange_states_window_size */
  uint64_t timeout_ns;   /**< > 0 */
  uint32_t *status;      /**< 4-byte aligned; memory of this rank or of its host */
  void *stream;
} assay_exchange_params;

assay_status assay_paged_attention_v1(const assay_paged_params *params);
assay_status assay_paged_attention_v2(const assay_paged_params *params);
assay_status assay_paged_attention_v2_plan(const assay_paged_params *params);
assay_status assay_tree_attention(const assay_paged_params *params);
assay_status assay_tree_attention_plan(const assay_paged_params *params);
assay_status assay_tree_attention_plan_lengths(const assay_paged_params *params);
assay_status assay_cascade_attention(const assay_cascade_params *params);
assay_status assay_merge_state(const assay_merge_state_params *params);
assay_status assay_merge_states(const assay_merge_states_params *params);
assay_status assay_exchange_states(const assay_exchange_params *params);

/** ASSAY_OK when the call would be launched; otherwise its status, with the message set. */
assay_status assay_paged_attention_v1_supports(const assay_paged_params *params);
assay_status assay_paged_attention_v2_supports(const assay_paged_params *params);
assay_status assay_tree_attention_supports(const assay_paged_params *params);
assay_status assay_cascade_attention_supports(const assay_cascade_params *params);
assay_status assay_merge_state_supports(const assay_merge_state_params *params);
assay_status assay_merge_states_supports(const assay_merge_states_params *params);
assay_status assay_exchange_states_supports(const assay_exchange_params *params);

/**
 * The version expected to be faster, and the even_lengths to call v1 with, for lengths that sum to
 * total_tokens, 0 .. batch * max_seq_len, with the longest of max_seq_len, 0 .. 2^30 (host
 * knowledge; q, out, lse, kv, workspace, plan and strides of params are not looked at): a model of
 * bytes, launch and merge cost measured on an H200 (kernels/decode/kernel_choice.h). num_splits > 0
 * asks for v2. choice is not null; after a failure it is unchanged.
 */
assay_status assay_paged_attention_choose(const assay_paged_params *params, int64_t total_tokens,
                                          int32_t max_seq_len, assay_paged_choice *choice);

/**
 * Scratch bytes for these shapes at any lengths up to kv.max_pages * kv.page_size, and bytes of a
 * plan. bytes is not null. Only shapes and options are looked at, those of the cache included; of a
 * cascade its levels, which are checked as in the call.
 */
assay_status assay_paged_attention_v2_workspace_size(const assay_paged_params *params,
                                                     uint64_t *bytes);
assay_status assay_paged_attention_v2_plan_size(const assay_paged_params *params, uint64_t *bytes);
assay_status assay_tree_attention_workspace_size(const assay_paged_params *params, uint64_t *bytes);
assay_status assay_tree_attention_plan_size(const assay_paged_params *params, uint64_t *bytes);
assay_status assay_cascade_attention_workspace_size(const assay_cascade_params *params,
                                                    uint64_t *bytes);

/** Bytes of a window that serves calls of up to max_rows rows. Only max_rows, num_heads, head_dim,
    dtype, heads and num_ranks are looked at. bytes is not null. */
assay_status assay_exchange_states_window_size(const assay_exchange_params *params,
                                               uint64_t *bytes);

/** ASSAY_ABI_MAJOR * 2^16 + ASSAY_ABI_MINOR of the header that this library was built with. */
uint32_t assay_abi_version(void);

/** Message of this thread's last failed call; empty after a success. Valid until the next call. */
const char *assay_last_error(void);

/** "ok", "invalid argument", ...; never null. */
const char *assay_status_name(assay_status status);

#ifdef __cplusplus
}
#endif

/*
 * Not a number. A NaN in a query or a key makes the score of that row and key NaN. Then every
 * component of O and the LSE of the row are NaN, if it sees the key. A NaN in a value makes its
 * component of O NaN in every row that sees the key with at least 2^-20 of the row's weight. To a
 * merge of two states or more that are not empty, an LSE is a score and o its value.
 * Rows that do not see it keep their bits, but for one thing: where causal order or a window hides
 * a key from a query token, a NaN or an infinity in its value may make that component of the
 * token's O NaN. (The tokens of a request share a tile of values, and 0 times NaN is NaN.) Of
 * infinities nothing more than that is promised. The kernels of this library keep to it.
 */

#endif /* ASSAY_ABI_ASSAY_H_ */
