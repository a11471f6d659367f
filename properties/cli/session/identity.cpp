// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/session/identity.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/case/hash.h"
#include "properties/case/ledger.h"

namespace assay {
namespace {

/// 16 hexadecimal digits; "" of a file that cannot be read.
std::string hash_of_file(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return "";
  uint64_t hash = 0;
  for (std::istreambuf_iterator<char> at(in), end; at != end; ++at)
    hash = hash_mix(hash ^ static_cast<unsigned char>(*at));
  return fmt::format("{:016x}", hash);
}

std::string machine() {
  utsname name{};
  if (uname(&name) != 0) return "unknown";
  return fmt::format("{}, {} {}, {} processors", name.nodename, name.sysname, name.machine,
                     sysconf(_SC_NPROCESSORS_ONLN));
}

} // namespace

nlohmann::json identity_json(const Session &session) {
  const SessionOptions &o = session.options;
  nlohmann::json library = {{"name", session.plugin->name}};
  if (!o.plugin.empty())
    library.update({{"file", o.plugin}, {"id", hash_of_file(o.plugin)}});
  else if (!o.worker.empty())
    library.update({{"file", o.worker}, {"id", o.worker}});
  else
    library.update({{"file", ""}, {"id", session.commit}});
  return {
      {"library", library}, {"commit", session.commit}, {"date", today()}, {"machine", machine()}};
}

} // namespace assay
