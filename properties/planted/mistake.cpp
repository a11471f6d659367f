// SPDX-License-Identifier: Apache-2.0
#include "properties/planted/mistake.h"

namespace assay::planted {

Mistake seen(const std::string &name, std::function<void(ServedCall &, Call &)> change) {
  return {name, [change](ServedCall &call) {
            Call wrong = call.right();
            change(call, wrong);
            call.plant(wrong);
            return Wrong{};
          }};
}

} // namespace assay::planted
