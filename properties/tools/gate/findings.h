// SPDX-License-Identifier: Apache-2.0
// What both revisions find, told apart by replay on both.
#pragma once

#include "properties/tools/gate/red_line.h"
#include "properties/tools/gate/revision.h"

namespace assay::gate {

struct Classed {
  enum class State {
    kNew,   ///< head fails, base does not, or not in this way
    kKnown, ///< both fail in the same way
    kFixed, ///< base alone fails
    kFlaky  ///< a revision fails sometimes
  };
  State state = State::kNew;
  bool red = false; ///< new, or flaky on head alone
  std::string kernel, property, message, fingerprint, how_far, cause, case_text;
  std::string file, reproduce;         ///< file of the case, where it was kept
  std::vector<std::string> properties; ///< that see it, the sharpest first
  Replays base, head;
};

const char *name_of(Classed::State state);

/// Which run of `check` has the fingerprint.
struct Seen {
  bool base = false, head = false;
};

/// By what the runs and the replays say.
Classed::State state_of(const Replays &base, const Replays &head, Seen seen);
bool is_red(Classed::State state, const Replays &base, Seen seen);

struct RevisionPair {
  Revision base, head;
};

/// The groups of two documents of `check` over the same draws, head's first; cases are kept as
/// files in `out`.
std::vector<Classed> classify(const RevisionPair &revisions, const json &base, const json &head,
                              const std::string &out, const Progress &progress);

/// A case that head adds to the kept findings: fixed where base alone fails it, new where head
/// fails it and its status is fixed; nothing where it passes on both, or is known to fail.
std::vector<Classed> classify_added(const RevisionPair &revisions, const std::string &path,
                                    const std::string &text, const std::string &out,
                                    const Progress &progress);

/// Kept findings that fail on head: regression where they do not on base, else a note.
RedLines kept_red_lines(const json &base, const json &head, std::vector<std::string> &notes);

/// Properties and kernels about which head's run proves less than base's.
RedLines proof_red_lines(const json &base, const json &head, std::vector<std::string> &notes);

} // namespace assay::gate
