// SPDX-License-Identifier: Apache-2.0
// What a kernel takes, learnt from its answers before anything runs.
#pragma once

#include <map>
#include <string>

#include "properties/case/envelope.h"
#include "properties/sut/sut.h"

namespace assay {

/// Asks a kernel (workspace_size and supports, never run) about small cases that differ in one
/// field from one that it takes. An envelope without fields: it takes everything, or nothing.
/// `isolate`: asked in a process of its own. `known`: values of fields that it is said to take,
/// for one that takes a single shape and does not say which.
Envelope probe_envelope(const assay_kernel &kernel, bool isolate,
                        const std::map<std::string, int> &known = {});
/// The envelope of a sut whose runs end with the kernel's answer.
Envelope probe_envelope(Sut &answering, const std::map<std::string, int> &known = {});

/// Whether a kernel of ours serves a part of the calls of its family on purpose, and is to be asked
/// which (kernels/ranks). What the others refuse is a mistake.
bool is_narrow(const assay_kernel &own);

} // namespace assay
