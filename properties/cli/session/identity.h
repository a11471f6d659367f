// SPDX-License-Identifier: Apache-2.0
// What was checked, by what, when and where: in every report.
#pragma once

#include "properties/cli/session/session.h"

namespace assay {

/// {"name", "file", "id"} of the kernels' library and {"commit", "date", "machine"} of the run. The
/// id is a hash of a plugin's bytes, of a worker its command, of our own kernels the commit.
nlohmann::json identity_json(const Session &session);

} // namespace assay
