// SPDX-License-Identifier: Apache-2.0
// The commands of the program, and the options of each. Durations are in seconds; 0 and "" stand
// for what was not given.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "properties/cli/findings/findings.h"
#include "properties/cli/session/report_files.h"
#include "properties/cli/session/session.h"

namespace assay {

/// One kernel, one property, or all of a target.
struct Selection {
  std::string kernel, property, target;
};

struct ListOptions {
  std::string what;
};
int command_list(Session &session, const ListOptions &options);

struct CheckOptions {
  Selection selection;
  FindingFolders folders;
  ReportPaths reports;
  std::string only; ///< values that the fields of cases may have
  int cases = 0, threads = 0;
  double budget = 0;
  bool fail_fast = false;
};
int command_check(Session &session, const CheckOptions &options);

/// Options of the commands that take cases from files.
struct FileOptions {
  Selection selection;
  std::vector<std::string> files;
  std::string out;          ///< of shrink
  bool declaration = false; ///< of explain
  int explore = 0;          ///< of replay
};
int command_replay(Session &session, const FileOptions &options);
int command_shrink(Session &session, const FileOptions &options);
int command_explain(Session &session, const FileOptions &options);
/// explain --declaration.
int explain_declaration(Session &session, const FileOptions &options);

struct MergeOptions {
  std::vector<std::string> files;
  ReportPaths reports;
};
int command_merge_reports(Session &session, const MergeOptions &options);

struct BenchOptions {
  std::string cells, only;
  std::string against;              ///< library whose kernels run beside the others
  std::vector<std::string> kernels; ///< of --against
  std::vector<int> tree_splits;
  bool verify = false, host_only = false;
};
int command_bench(Session &session, const BenchOptions &options);

struct MutantsOptions {
  std::string kernel;
  std::vector<std::string> mutants, cases;
  int runs = 0, keys = 0, splits = 0, threads = 0;
  bool default_draw = false, first_schedule = false, usual_rules = false;
};
int command_mutants(Session &session, const MutantsOptions &options);

/// What `new plugin` writes.
struct NewOptions {
  std::string what, folder, name = "my_kernel", like;
  bool paged = false, cascade = false, merge = false;
  bool simt = false, cuda = false, python = false;
};
int command_new(Session &session, const NewOptions &options);

/// A command that the Python package has.
struct PythonCommand {
  const char *name, *help;
};
inline constexpr PythonCommand kPythonCommands[] = {
    {"judge", "calls of others, in files"},
    {"judge-callable", "a function of tensors, run and judged"},
    {"serve", "judge-callable over HTTP, on this machine alone"},
};
bool is_python_command(std::string_view name);
/// Becomes the Python package; `arguments` begin with the command. CliError where there is no
/// python3.
void run_in_python(const std::vector<std::string> &arguments);

struct GateOptions {
  std::string base, head, base_plugin, head_plugin, judge, out, target;
  std::vector<std::string> accept;
  ReportPaths reports;
  int cases = 0;
  double budget = 0;
  bool all = false;
};
int command_gate(Session &session, const GateOptions &options);

struct CampaignOptions {
  std::string only; ///< the target of fuzz
  std::string dir;
  std::vector<std::string> fuzzers;
  double hours = 0, budget = 0, slice = 0;
  int jobs = 0;
};
int command_campaign(Session &session, const CampaignOptions &options);
int command_fuzz(Session &session, const CampaignOptions &options);

} // namespace assay
