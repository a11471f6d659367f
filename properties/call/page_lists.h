// SPDX-License-Identifier: Apache-2.0
// Puts the pages of a call into lists (assay_paged_kv::page_indptr) in place of a table.
#pragma once

#include "properties/call/tensors.h"

namespace assay {

/// Lists of a row's own length, one behind the other, with dead entries between some of them.
void put_pages_into_lists(Tensors &t);

/// One list a kv head, behind put_pages_into_lists: head h has its keys and values in other pages.
/// What t says of single keys (Tensors::key, val) is wrong afterwards; what a kernel reads is the
/// same.
void give_heads_their_lists(Tensors &t);

} // namespace assay
