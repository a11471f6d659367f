// SPDX-License-Identifier: Apache-2.0
#include "corpus/served/mistakes.h"

namespace assay::served {
namespace {

/// Key `from`, its value too, in the place of key `to`.
void copy_key(ServedCall &call, Call &wrong, int to, int from) {
  Call right = call.right();
  call.copy(call.key(wrong, to, call.kv_head()), call.key(right, from, call.kv_head()),
            call.token_bytes());
  call.copy(call.value(wrong, to, call.kv_head()), call.value(right, from, call.kv_head()),
            call.token_bytes());
}

/// The last key in its place, and one key less.
void drop_key(ServedCall &call, Call &wrong, int position) {
  call.take_spare_page(wrong, position);
  copy_key(call, wrong, position, call.last_key());
  --call.length_of(wrong);
}

/// Keys of one weight would hide it.
void exchange_values(ServedCall &call, Call &wrong) {
  Call right = call.right();
  const int a = call.middle_key(), b = a + 1;
  call.take_spare_page(wrong, a);
  call.copy(call.value(wrong, a, call.kv_head()), call.value(right, b, call.kv_head()),
            call.token_bytes());
  call.copy(call.value(wrong, b, call.kv_head()), call.value(right, a, call.kv_head()),
            call.token_bytes());
}

/// Keys or values of the page behind it, in the middle key's page.
void take_next_page(ServedCall &call, Call &wrong, bool keys) {
  Call right = call.right();
  const int first = call.middle_key() / kPage * kPage;
  call.take_spare_page(wrong, first);
  const auto at = [&](Call &c, int position) {
    return keys ? call.key(c, position, call.kv_head()) : call.value(c, position, call.kv_head());
  };
  for (int i = 0; i < kPage; ++i)
    call.copy(at(wrong, first + i), at(right, first + kPage + i), call.token_bytes());
}

int32_t &middle_page(ServedCall &call, Call &wrong) {
  return wrong.page_of(call.sizes().request, call.middle_key());
}

} // namespace

std::vector<Mistake> mistakes_of_keys() {
  return {
      seen("one key dropped",
           [](ServedCall &call, Call &wrong) { drop_key(call, wrong, call.middle_key()); }),
      seen("the first key dropped",
           [](ServedCall &call, Call &wrong) { drop_key(call, wrong, call.first_key()); }),
      seen("the last key dropped", [](ServedCall &call, Call &wrong) { --call.length_of(wrong); }),
      seen("a key behind the end", [](ServedCall &call, Call &wrong) { ++call.length_of(wrong); }),
      seen("a key twice",
           [](ServedCall &call, Call &wrong) {
             call.take_spare_page(wrong, call.middle_key());
             copy_key(call, wrong, call.middle_key() + 1, call.middle_key());
           }),
      seen("values of two keys exchanged", exchange_values),
      seen("a page twice",
           [](ServedCall &call, Call &wrong) {
             wrong.page_of(call.sizes().request, call.middle_key() + kPage) =
                 middle_page(call, wrong);
           }),
      seen("a page of the request in front",
           [](ServedCall &call, Call &wrong) {
             middle_page(call, wrong) = wrong.page_of(call.sizes().request - 1, call.middle_key());
           }),
      seen("keys of the neighbouring page",
           [](ServedCall &call, Call &wrong) { take_next_page(call, wrong, true); }),
      seen("values of the neighbouring page",
           [](ServedCall &call, Call &wrong) { take_next_page(call, wrong, false); }),
      seen("values of a wrong kv head in one page",
           [](ServedCall &call, Call &wrong) {
             Call right = call.right();
             const int first = call.middle_key() / kPage * kPage, own = call.kv_head();
             call.take_spare_page(wrong, first);
             for (int i = 0; i < kPage; ++i)
               call.copy(call.value(wrong, first + i, own), call.value(right, first + i, own - 1),
                         call.token_bytes());
           }),
  };
}

std::vector<Mistake> mistakes_of_offsets() {
  return {seen("bit 31 of a page's offset lost", [](ServedCall &call, Call &wrong) {
    middle_page(call, wrong) -= call.sizes().lost_pages;
  })};
}

} // namespace assay::served
