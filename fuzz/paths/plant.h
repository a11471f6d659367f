// SPDX-License-Identifier: Apache-2.0
// The mistakes compiled into a planted target: kernels/ with the schemata of corpus/mutants and
// fuzz/planted in front of it on the include path.
#pragma once

#include <span>
#include <string_view>

#include "corpus/mutants/active.h"

namespace assay::fuzz {

std::span<const mutants::Mutant> planted();
/// The number of a mistake for mutants::Activate; 0 when there is none of that name.
int planted_id(std::string_view name);

} // namespace assay::fuzz
