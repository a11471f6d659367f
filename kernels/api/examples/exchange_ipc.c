/* SPDX-License-Identifier: Apache-2.0
 * Two processes, a GPU each (or both on one), that map each other's window by CUDA IPC and merge
 * what they hold of the same rows. */
#include <assay/assay.h>

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kRows = 16, kHeads = 8, kHeadDim = 128, kStates = kRows * kHeads, kCalls = 3 };

static void need(int holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(cudaGetLastError()));
  exit(1);
}

/* Sends `mine` to the other process and waits for its `theirs`. */
static void swap(int socket, const void *mine, void *theirs, size_t bytes) {
  need(write(socket, mine, bytes) == (ssize_t)bytes &&
           read(socket, theirs, bytes) == (ssize_t)bytes,
       "the other process is gone");
}

static float *filled(size_t count, float value) {
  float *host = malloc(count * sizeof *host), *device = NULL;
  for (size_t i = 0; i < count; ++i)
    host[i] = value;
  need(cudaMalloc((void **)&device, count * sizeof *host) == cudaSuccess &&
           cudaMemcpy(device, host, count * sizeof *host, cudaMemcpyHostToDevice) == cudaSuccess,
       "input");
  free(host);
  return device;
}

/* This rank's window, zeroed, and the peer's as this process addresses it. */
static void map_windows(int socket, int rank, uint64_t bytes, void *windows[2]) {
  cudaIpcMemHandle_t mine, theirs;
  need(cudaMalloc(&windows[rank], bytes) == cudaSuccess &&
           cudaMemset(windows[rank], 0, bytes) == cudaSuccess &&
           cudaDeviceSynchronize() == cudaSuccess &&
           cudaIpcGetMemHandle(&mine, windows[rank]) == cudaSuccess,
       "window");
  /* Behind the swap the peer's window holds zeros, too. */
  swap(socket, &mine, &theirs, sizeof mine);
  need(cudaIpcOpenMemHandle(&windows[1 - rank], theirs, cudaIpcMemLazyEnablePeerAccess) ==
           cudaSuccess,
       "the peer's window");
}

static int run(int rank, int socket) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    printf("rank %d: no CUDA device\n", rank);
    return 0;
  }
  need(cudaSetDevice(rank % devices) == cudaSuccess, "device");

  assay_exchange_params p = {0};
  p.struct_size = sizeof p;
  p.target = ASSAY_TARGET_CUDA;
  p.dtype = ASSAY_FP32;
  p.heads = ASSAY_EXCHANGE_ALL;
  p.num_ranks = 2, p.rank = rank;
  p.num_rows = p.max_rows = kRows, p.num_heads = kHeads, p.head_dim = kHeadDim;
  need(assay_exchange_states_window_size(&p, &p.window_bytes) == ASSAY_OK, assay_last_error());
  void *windows[2];
  map_windows(socket, rank, p.window_bytes, windows);
  p.windows = windows;
  p.timeout_ns = 10000000000u; /* 10 s: a peer that is gone is told by its bit of the status */
  need(cudaHostAlloc((void **)&p.status, sizeof *p.status, cudaHostAllocMapped) == cudaSuccess,
       "status");
  *p.status = 0;

  /* Rank 0 has seen values of 1, rank 1 of 3, with equal weight: 2 and log 2. */
  p.o_in = filled((size_t)kStates * kHeadDim, rank == 0 ? 1.0f : 3.0f);
  p.lse_in = filled(kStates, 0.0f);
  p.out = filled((size_t)kStates * kHeadDim, -1.0f);
  p.lse = filled(kStates, -1.0f);
  p.o_in_stride_row = p.out_stride_row = kHeads * kHeadDim;
  p.o_in_stride_head = p.out_stride_head = kHeadDim;
  p.lse_in_stride_row = p.lse_stride_row = kHeads;
  p.lse_in_stride_head = p.lse_stride_head = 1;
  for (int call = 0; call < kCalls; ++call)
    need(assay_exchange_states(&p) == ASSAY_OK, assay_last_error());
  need(cudaDeviceSynchronize() == cudaSuccess, "exchange");

  float o = 0, lse = 0;
  need(cudaMemcpy(&o, p.out, sizeof o, cudaMemcpyDeviceToHost) == cudaSuccess &&
           cudaMemcpy(&lse, p.lse, sizeof lse, cudaMemcpyDeviceToHost) == cudaSuccess,
       "output");
  printf("rank %d on device %d: o %g, lse %g, missing peers %#x\n", rank, rank % devices, o, lse,
         *p.status);
  /* Nobody frees a window that its peer may still write. */
  swap(socket, &rank, &devices, sizeof rank);
  return *p.status == 0 && o == 2.0f && fabsf(lse - logf(2.0f)) < 1e-6f ? 0 : 1;
}

int main(void) {
  int sockets[2], status = 0;
  need(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0, "socketpair");
  const pid_t child = fork(); /* before CUDA is touched: a context does not survive it */
  if (child == 0) exit(run(1, sockets[1]));
  const int result = run(0, sockets[0]);
  need(child > 0 && waitpid(child, &status, 0) == child, "the other process");
  return result != 0 || status != 0;
}
