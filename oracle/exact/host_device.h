// SPDX-License-Identifier: Apache-2.0
// Formulas that the oracle evaluates on a GPU too are one text for both.
#pragma once

#ifdef __CUDACC__
#define ORACLE_HOST_DEVICE __host__ __device__
#else
#define ORACLE_HOST_DEVICE
#endif
