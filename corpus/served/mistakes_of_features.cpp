// SPDX-License-Identifier: Apache-2.0
#include "corpus/served/mistakes.h"

#include <cmath>

namespace assay::served {

std::vector<Mistake> mistakes_of_fp8() {
  const auto kv = [](ServedCall &call) { return static_cast<size_t>(call.kv_head()); };
  return {
      seen("k_scale of the neighbouring head",
           [kv](ServedCall &call, Call &wrong) {
             wrong.k_scale[kv(call)] = wrong.k_scale[kv(call) - 1];
           }),
      seen("v_scale of the neighbouring head",
           [kv](ServedCall &call, Call &wrong) {
             wrong.v_scale[kv(call)] = wrong.v_scale[kv(call) - 1];
           }),
      seen("v_scale left out",
           [kv](ServedCall &call, Call &wrong) { wrong.v_scale[kv(call)] = 1.0f; }),
      {"the sign of one element of a value",
       [](ServedCall &call) {
         Call wrong = call.right();
         call.take_spare_page(wrong, call.middle_key());
         auto *value = static_cast<uint8_t *>(call.value(wrong, call.middle_key(), call.kv_head()));
         uint8_t byte = 0;
         call.copy(&byte, value + 42, 1);
         byte ^= 0x80;
         call.copy(value + 42, &byte, 1);
         call.plant(wrong);
         return Wrong{42};
       }},
  };
}

std::vector<Mistake> mistakes_of_features() {
  const auto head = [](ServedCall &call) { return static_cast<size_t>(call.head()); };
  return {
      seen("a sink left out",
           [head](ServedCall &call, Call &wrong) { wrong.sinks[head(call)] = -INFINITY; }),
      seen("a sink counted twice",
           [head](ServedCall &call, Call &wrong) { wrong.sinks[head(call)] += 0.6931472f; }),
      seen("the sink of the neighbouring head",
           [head](ServedCall &call, Call &wrong) {
             wrong.sinks[head(call)] = wrong.sinks[head(call) - 1];
           }),
      seen("a window too long by one", [](ServedCall &, Call &wrong) { ++wrong.p.window_left; }),
      seen("a window too short by one", [](ServedCall &, Call &wrong) { --wrong.p.window_left; }),
      seen("the slope of the neighbouring head",
           [head](ServedCall &call, Call &wrong) {
             wrong.slopes[head(call)] = wrong.slopes[head(call) - 1];
           }),
  };
}

std::vector<Mistake> mistakes_of_tokens() {
  return {
      seen("a token sees the next one",
           [](ServedCall &call, Call &wrong) { ++call.length_of(wrong); }),
      seen("a token does not see itself",
           [](ServedCall &call, Call &wrong) { --call.length_of(wrong); }),
      {"the row of the token in front",
       [](ServedCall &call) {
         call.plant(call.right(), call.row() - 1, call.head());
         return Wrong{};
       }},
  };
}

} // namespace assay::served
