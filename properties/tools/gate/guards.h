// SPDX-License-Identifier: Apache-2.0
// Guarded lines: what a change does to its own judge. Each is for a person to accept.
#pragma once

#include <functional>

#include "properties/tools/gate/red_line.h"
#include "properties/tools/gate/rooms.h"

namespace assay::gate {

/// The revisions of a change as guards read them.
struct ChangeText {
  std::vector<Change> changes;
  std::function<Room(const std::string &path)> room;
  std::function<std::string(const std::string &path)> base, head; ///< a file; empty: not there
  std::function<std::vector<std::string>(const std::string &path)> added; ///< lines of head alone
};

/// In the order of the changes: judge-changed (beside a kernel), finding-deleted, finding-weakened,
/// mutant-deleted, mutant-changed (beside a kernel), special-case.
RedLines guarded(const ChangeText &change);

bool touches(const ChangeText &change, Room room);

/// Whether the text of a kept finding asks for less than it did: another case, or a status other
/// than fixed that it did not have.
bool weaker_finding(const std::string &base, const std::string &head);

/// Why a line has no business in a kernel: it asks where it runs, or outlives a call. Empty: it
/// has.
std::string special_case(const std::string &line);

} // namespace assay::gate
