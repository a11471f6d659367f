// SPDX-License-Identifier: Apache-2.0
// Every property as data: the one table from which the runner, the command line and the page are
// made.
#pragma once

#include <span>
#include <string_view>

#include "properties/case/features.h"
#include "properties/invariants/invariants.h"

namespace assay {

/// What a kernel must have for a property to say anything about it.
enum Need : unsigned {
  kSplits = 1,        ///< it can cut a row into parts
  kExactNumbers = 2,  ///< it runs over ASSAY_FIELD61
  kExecutor = 4,      ///< it runs on the CPU executor
  kDeterminism = 8,   ///< it declares some
  kExactWeights = 16, ///< weights are exact where base-2 logits are integers, and so is their sum
  kNanContract = 32,  ///< it promises something of NaN
  kChecks = 64,       ///< it promises to refuse forbidden calls
  kKeyOrder = 128,    ///< it declares the order of keys
  kPageLists = 256    ///< it takes pages in lists
};

/// What a property may choose itself, whatever the case says.
enum Setting : unsigned {
  kSplitCount = 1,
  kPlacement = 2,
  kElementType = 4,
  kHeadDim = 8,
  kLiveStates = 16,   ///< of merges: at least two
  kScores = 32,       ///< all equal, or exact
  kLengths = 64,      ///< short ones
  kWindowSize = 128,  ///< always one
  kEmptyStates = 256, ///< of merges: what has at most one live state is compared
  kOwnMerges = 512,   ///< calls of its own on the states of the case, a few at a time
  kPairs = 1024,      ///< of two states each
  kOwnPages = 2048    ///< no two requests share one
};

enum class Comparison {
  kBitwise,
  kBitwiseInBatch, ///< within bound where the kernel declares that bits may follow the batch
  kPairwise,       ///< two runs, within the sum of their bounds
  kInBound,        ///< one run, within its bound
  kKnownValue,     ///< one run, against values known without the oracle
  kRefusal         ///< no run: calls are refused
};

struct Property {
  const char *name;
  unsigned families;    ///< bits 1 << Family
  unsigned needs = 0;   ///< Need: other kernels are left out
  unsigned about = 0;   ///< Feature: a kernel without it has no case, and need not
  unsigned without = 0; ///< Feature: its cases run without them
  unsigned sets = 0;    ///< Setting
  Comparison comparison;
  const char *statement; ///< what holds
  const char *catches;   ///< what breaks it
  int cost;              ///< kernel runs per case, about
  int weight = 1;        ///< cases it gets for each one that others get
  CheckResult (*check)(const Problem &, Sut &);
};

std::span<const Property> properties();
const Property *find_property(std::string_view name); ///< null when there is none

} // namespace assay
