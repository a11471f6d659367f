// SPDX-License-Identifier: Apache-2.0
#include "oracle/judge/found_order.h"

#include <cstdio>

namespace assay::oracle {

std::string order_words(const OrderRule &rule, int splits) {
  std::string words = "tiles of " + std::to_string(rule.tile);
  words += ", " + std::to_string(splits) + (splits == 1 ? " split" : " splits");
  if (splits > 1 && rule.parts == 0) words += " of " + std::to_string(rule.unit) + " keys";
  if (splits > 1 && rule.in_turn) words += " in turn";
  if (rule.states > 1) words += ", " + std::to_string(rule.states) + " states";
  return words + (rule.backwards ? ", backwards" : ", forwards");
}

std::string order_words(const FoundOrder &found) {
  if (found.state == OrderState::kNotLookedFor) return "";
  if (found.state == OrderState::kNone) return "no known order fits";
  std::string words = order_words(found.rule, found.splits);
  if (found.rows_otherwise > 0)
    words += " in " + std::to_string(found.rows_by_rule) + " of " + std::to_string(found.rows) +
             " rows, others in " + std::to_string(found.rows_otherwise);
  words += "; " + std::to_string(found.explained) + " of " + std::to_string(found.pairs) +
           " heads of rows explained";
  if (found.doubts == 0) return words;
  char ratio[32];
  std::snprintf(ratio, sizeof ratio, "%.3g", found.doubt_ratio);
  return words + "; no known order explains row " + std::to_string(found.doubt_row) + " head " +
         std::to_string(found.doubt_head) + " (" + ratio + " times what theirs allows)" +
         (found.doubts > 1 ? " and " + std::to_string(found.doubts - 1) + " more" : "");
}

} // namespace assay::oracle
