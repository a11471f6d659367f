// SPDX-License-Identifier: Apache-2.0
// What a kernel says wrongly of a call that it is asked about, as data beside the words for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "properties/sut/hazard.h"

namespace assay {

struct WrongAnswer {
  enum class Asked : uint8_t { kSupports, kRun, kWorkspace, kPlan };
  enum class Answer : uint8_t { kTaken, kRefused, kNeither };

  std::string call; ///< the argument and what is wrong with it, or the limit that the call keeps
  Asked asked = Asked::kSupports;
  Answer answer = Answer::kTaken;
  std::string text; ///< all of it, in words that may change
  /// What ended the process that was asked, if something did: nothing else is known then.
  std::vector<Hazard> ended;
};

const char *name_of(WrongAnswer::Asked asked);
const char *name_of(WrongAnswer::Answer answer);

} // namespace assay
