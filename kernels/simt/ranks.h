// SPDX-License-Identifier: Apache-2.0
// Several devices at once.
#pragma once

#include <cstdint>

#include "kernels/simt/function_ref.h"
#include "kernels/simt/launch.h"
#include "kernels/simt/stream.h"

namespace assay::simt {

constexpr uint32_t kMaxRanks = 8;

// Runs body(rank) for the ranks 0 .. count - 1, as programs that each have a device of their own.
// What they launch on `stream` runs in turns: a block gives way where it waits for a word that
// another device writes (await_word), and with a seeded schedule now and then before that. The
// schedule of the stream says whose turn it is. All ranks share the memory of the stream, so that a
// buffer of one is a window for its peers; the launches of a rank are ordered, those of two ranks
// are not. A wait ends without its word once nobody can run.
//
// Blocks of one launch begin in the same order on every rank, and the next begins when those before
// it wait or have ended; at most kBesideEachOther of a launch have begun and not ended. A block may
// wait for the block of the same number on another rank. Launches are synchronous for their rank.
// Bodies run on stacks of 128 KiB (512 KiB under ASan). What a body throws is thrown once all have
// ended. Throws std::logic_error inside a launch or another run_ranks.
void run_ranks(Stream &stream, uint32_t count, FunctionRef<void(uint32_t rank)> body);
constexpr uint32_t kBesideEachOther = 2;

// For launch(): whether a body of run_ranks is running and launches on its stream, and what it does
// then.
bool on_rank(const Stream *stream);
LaunchStatus launch_on_rank(const LaunchConfig &config, FunctionRef<void()> thread_body);

} // namespace assay::simt
