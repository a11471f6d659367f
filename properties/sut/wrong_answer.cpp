// SPDX-License-Identifier: Apache-2.0
#include "properties/sut/wrong_answer.h"

namespace assay {

const char *name_of(WrongAnswer::Asked asked) {
  switch (asked) {
  case WrongAnswer::Asked::kSupports:
    return "supports";
  case WrongAnswer::Asked::kRun:
    return "run";
  case WrongAnswer::Asked::kWorkspace:
    return "workspace_size";
  case WrongAnswer::Asked::kPlan:
    return "plan_size";
  }
  return "";
}

const char *name_of(WrongAnswer::Answer answer) {
  switch (answer) {
  case WrongAnswer::Answer::kTaken:
    return "takes";
  case WrongAnswer::Answer::kRefused:
    return "refuses";
  case WrongAnswer::Answer::kNeither:
    return "neither takes nor refuses";
  }
  return "";
}

} // namespace assay
