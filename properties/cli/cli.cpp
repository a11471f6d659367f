// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/cli.h"

#include <deque>
#include <functional>
#include <ostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "properties/cli/commands/commands.h"
#include "properties/cli/parse_error.h"
#include "properties/cli/plugins/declaration_file.h"
#include "properties/cli/plugins/plugin_loader.h"
#include "properties/cli/plugins/worker_loader.h"
#include "properties/cli/session/version.h"
#include "properties/cli/validators.h"
#include "properties/plugins/arithmetics.h"

namespace assay {
namespace {

constexpr const char *kFooter =
    "Exit codes: 0 pass, 1 finding, 2 usage or a bad file, 3 nothing here can run it,\n"
    "4 the harness failed, could not decide or proved nothing.";
constexpr int kManyCases = 100000000;

/// A duration as it was written, and where its seconds go.
struct Duration {
  std::string text;
  double *seconds;
};

class Parser {
public:
  explicit Parser(const std::string &version) {
    add_text(&app, "--json", options.json, "FILE",
             "write the result to FILE; -: standard output, text to standard error");
    add_text(&app, "--seed", options.seed, "N", "seed of everything drawn (1)")->check(SeedText());
    app.add_flag("--quiet", options.quiet, "only findings and errors");
    app.require_subcommand(1);
    app.set_version_flag("--version", version);
    app.footer(kFooter);
    app.fallthrough();
    add_list();
    add_check();
    add_file_commands();
    add_merge();
    add_bench();
    add_mutants();
    add_new();
    add_python_commands();
    add_gate();
    add_campaign();
    for (CLI::App *s : app.get_subcommands({}))
      refuse_empty(*s);
    refuse_empty(app);
  }

  /// Which word is no command; `otherwise` when none was missing.
  std::string missing_command(const std::string &otherwise) {
    std::string known;
    for (const CLI::App *s : app.get_subcommands({}))
      known += (known.empty() ? "" : ", ") + s->get_name();
    const auto rest = app.remaining();
    if (rest.empty()) return otherwise + "; one of " + known;
    return fmt::format("unknown command {}; known: {}", quoted_word(rest[0]), known);
  }

  void read_assume() { options.assumed = parse_assumed(assume_); }
  void read_durations() const {
    for (const Duration &duration : durations_) {
      if (duration.text.empty()) continue;
      const bool elsewhere = !options.plugin.empty() || !options.worker.empty() || options.isolate;
      if (duration.seconds == &options.patience && !elsewhere)
        throw CliError(kExitUsage, "--patience is for kernels in processes of their own: --plugin, "
                                   "--worker or --isolate");
      *duration.seconds = parse_duration(duration.text);
    }
  }

  CLI::App app{"Checks attention kernels against what must hold.", "assay"};
  SessionOptions options;
  std::function<int(Session &)> command;

private:
  template <class Options>
  CLI::App *sub(const char *name, const char *what, const Options &given,
                int (*run)(Session &, const Options &)) {
    CLI::App *s = app.add_subcommand(name, what);
    s->callback([this, &given, run] {
      command = [&given, run](Session &session) { return run(session, given); };
    });
    s->footer("Of every command: --json FILE, --seed N, --quiet (assay --help).");
    return s;
  }

  template <class T>
  static CLI::Option *add_text(CLI::App *s, const char *name, T &value, const char *type,
                               const std::string &what) {
    return s->add_option(name, value, what)->type_name(type);
  }
  static CLI::Option *add_count(CLI::App *s, const char *name, int &value, int most,
                                const char *what) {
    return add_text(s, name, value, "N", what)->check(in_range(1, most));
  }
  CLI::Option *add_duration(CLI::App *s, const char *name, double &seconds, const char *example,
                            const std::string &what) {
    durations_.push_back({"", &seconds});
    return add_text(s, name, durations_.back().text, example, what);
  }

  static void refuse_empty(CLI::App &s) {
    for (CLI::Option *option : s.get_options())
      if (option->get_expected_max() > 0) option->check(NotEmpty());
  }

  void add_list() {
    CLI::App *s = sub("list", "kernels and properties, or the cells of bench", list_, command_list);
    s->add_option("what", list_.what, "kernels, properties or cells")
        ->check(OneOf({"kernels", "properties", "cells"}));
    add_source(s);
  }

  void add_check() {
    CLI::App *s = sub("check", "draw cases and check properties", check_, command_check);
    add_selection(s, check_.selection);
    auto *cases =
        add_count(s, "--cases", check_.cases, kManyCases, "cases per kernel and property (40)");
    add_duration(s, "--budget", check_.budget, "60s",
                 "time instead of a number of cases; a case of every class that must occur "
                 "comes on top (about 40 s for all kernels)")
        ->excludes(cases);
    add_text(s, "--only", check_.only, "FIELDS",
             "cases with these values of their fields only: dtype=bf16,head_dim=64/128");
    add_count(s, "--threads", check_.threads, 256, "worker threads (one per core, 16 at most)");
    s->add_flag("--fail-fast", check_.fail_fast,
                "end at the first finding, once it is shrunk and written");
    add_reports(s, check_.reports);
    s->add_flag("--isolate", options.isolate,
                "kernels in processes of their own (always for plugins)");
    add_text(s, "--out", check_.folders.out, "DIR",
             "folder for new findings (findings), replayed first");
    add_text(s, "--findings", check_.folders.kept, "DIR",
             "kept findings, replayed first (those beside this program, or corpus/findings "
             "of the tree around it or around this folder)");
  }

  void add_file_commands() {
    CLI::App *replay =
        sub("replay",
            "check the cases of files; on --target cuda also those that no host holds (corpus/big)",
            files_, command_replay);
    add_files(replay, -1);
    add_count(
        replay, "--explore", files_.explore, 1000000,
        "where a case passes, on up to N schedules that seeds draw, and then on up to N orders "
        "of its operations, until one fails (on the executor)");
    CLI::App *shrink = sub("shrink", "make a failing case smaller", files_, command_shrink);
    add_files(shrink, 1);
    add_text(shrink, "--out", files_.out, "FILE", "file to write (FILE.min)");
    CLI::App *explain =
        sub("explain", "why a case fails, or how close it comes", files_, command_explain);
    add_files(explain, 1)->required(false);
    explain->add_flag("--declaration", files_.declaration,
                      "what each field of a kernel's declaration adds to its bounds, on a typical "
                      "case or that of the file");
  }

  CLI::Option *add_files(CLI::App *s, int count) {
    add_selection(s, files_.selection);
    auto *files =
        s->add_option("files", files_.files, count == 1 ? "a .case" : "one .case or more");
    s->parse_complete_callback([this, s, count] {
      if (count > 0 && files_.files.size() > static_cast<size_t>(count))
        throw CliError(kExitUsage, fmt::format("{}: takes one file, and got {}", s->get_name(),
                                               files_.files.size()));
    });
    return files->required();
  }

  void add_merge() {
    CLI::App *s = sub("merge-reports", "the --json documents of several runs of check as one",
                      merge_, command_merge_reports);
    add_text(s, "files", merge_.files, "FILE...", "documents of check --json, of other seeds each")
        ->required();
    add_reports(s, merge_.reports);
  }

  void add_bench() {
    CLI::App *s = sub("bench", "time the cuda kernels against a plain read", bench_, command_bench);
    add_text(s, "--cells", bench_.cells, "FILE",
             "cells of a JSON file instead of the standard ones");
    add_text(s, "--only", bench_.only, "TEXT", "only cells whose name contains TEXT");
    auto *verify = s->add_flag("--verify", bench_.verify, "judge the outputs after the timing");
    s->add_flag("--host", bench_.host_only,
                "time what calls cost the host, and nothing of the device")
        ->excludes(verify);
    auto *against = add_text(s, "--against", bench_.against, "LIB",
                             "time the kernels of --plugin (or ours) beside those of this "
                             "library, in turns: which is slower?");
    add_text(s, "--plugin", options.plugin, "LIB", "with --against: the library that is judged")
        ->needs(against);
    add_text(s, "--kernel", bench_.kernels, "K...", "with --against: these kernels instead of all")
        ->needs(against);
    s->add_option("--tree-splits", bench_.tree_splits,
                  "of cascades: tree_attention with such num_splits, too")
        ->delimiter(',')
        ->check(in_range(1, 65536));
  }

  void add_mutants() {
    CLI::App *s =
        sub("mutants", "which check notices which wrong kernel", mutants_, command_mutants);
    add_text(s, "--kernel", mutants_.kernel, "K", "one kernel instead of all");
    add_text(s, "--mutant", mutants_.mutants, "NAME...", "these instead of all");
    s->add_flag("--default-draw", mutants_.default_draw,
                "draw as check does, until a property fails");
    s->add_flag("--first-schedule", mutants_.first_schedule,
                "what the executor reports of the draws of check on its first schedule");
    add_text(s, "--case", mutants_.cases, "FILE...", "with --first-schedule: these, and no draws");
    s->add_flag("--usual-rules", mutants_.usual_rules,
                "draw as check does, N(0,1), and judge by 1e-2, 1e-3, 98 % and 2x");
    add_count(s, "--runs", mutants_.runs, 100000, "inputs per mutant (20)");
    add_count(s, "--keys", mutants_.keys, 100000, "keys of the long request (509)");
    add_count(s, "--splits", mutants_.splits, 100, "splits of a row (2)");
    add_count(s, "--threads", mutants_.threads, 256, "worker threads (one per core)");
  }

  void add_new() {
    CLI::App *s = sub("new", "write a plugin's project: new plugin DIR --paged", new_, command_new);
    s->add_option("what", new_.what, "plugin, the only thing there is")
        ->required()
        ->check(OneOf({"plugin"}));
    add_text(s, "dir", new_.folder, "DIR", "its folder: absent or empty")->required();
    s->add_flag("--paged", new_.paged, "a kernel of paged attention");
    s->add_flag("--cascade", new_.cascade, "a kernel of cascade attention");
    s->add_flag("--merge", new_.merge, "kernels that merge two and many attention states");
    s->add_flag("--simt", new_.simt, "paged, of specialised warps, for the CPU executor and CUDA");
    s->add_flag("--cuda", new_.cuda, "in CUDA instead of C++");
    s->add_flag("--python", new_.python, "in NumPy instead of C++");
    add_text(s, "--name", new_.name, "NAME", "of library and kernel (my_kernel)");
    add_text(s, "--like", new_.like, "NAME", "named arithmetic that its declaration starts from")
        ->check(OneOf(plugins::arithmetic_names()));
  }

  void add_python_commands() {
    for (const PythonCommand &command : kPythonCommands)
      app.add_subcommand(command.name,
                         std::string(command.help) + ": a command of the Python package")
          ->parse_complete_callback([name = std::string(command.name)] {
            throw CliError(kExitUsage, fmt::format("{0}: stands before its options (assay {0} "
                                                   "--help)",
                                                   name));
          });
  }

  void add_gate() {
    CLI::App *s = sub("gate", "whether a change of kernels may go in", gate_, command_gate);
    add_text(s, "--base", gate_.base, "REF", "commit that the change is judged against");
    add_text(s, "--head", gate_.head, "REF", "the change (the files as they lie there)");
    add_text(s, "--base-plugin", gate_.base_plugin, "LIB", "instead: library before the change");
    add_text(s, "--head-plugin", gate_.head_plugin, "LIB", "and after it");
    add_duration(s, "--budget", gate_.budget, "10m", "time for everything (assay.toml's, or 10m)");
    add_count(s, "--cases", gate_.cases, kManyCases,
              "cases of the long run, per kernel and property, instead of what the time allows");
    s->add_flag("--all", gate_.all, "every kernel as if the change touched it");
    add_text(s, "--accept", gate_.accept, "ID...",
             "red lines that a person lets pass, by their id");
    add_text(s, "--out", gate_.out, "DIR",
             "folder for the cases of findings (build/gate/findings; of libraries: findings)");
    add_text(s, "--target", gate_.target, "T", "simt (default), or cuda: speed is compared, too");
    add_assume(s);
    add_text(s, "--judge", gate_.judge, "ASSAY", "program that judges libraries (this one)");
    add_reports(s, gate_.reports);
  }

  void add_campaign() {
    CLI::App *s = sub("campaign", "fuzz and draw for hours; goes on where it was", campaign_,
                      command_campaign);
    add_text(s, "--hours", campaign_.hours, "H", "time to spend (8)")
        ->check(in_range(0.001, 10000.0));
    add_hours(s, "8h");
    add_count(s, "--jobs", campaign_.jobs, 256, "tasks side by side (one per core)");
    add_source(s);
    CLI::App *fuzz = sub("fuzz", "one fuzz target, as campaign runs it", campaign_, command_fuzz);
    fuzz->add_option("target", campaign_.only, "such as tile or fuzz_tile")->required();
    add_hours(fuzz, "60s");
  }

  void add_hours(CLI::App *s, const char *otherwise) {
    add_duration(s, "--budget", campaign_.budget, "60s",
                 fmt::format("time to spend ({})", otherwise));
    add_text(s, "--dir", campaign_.dir, "DIR", "folder of everything it keeps");
    add_text(s, "--fuzzers", campaign_.fuzzers, "DIR...",
             "folders of fuzz_* programs, taken in turn (build/fuzz/fuzz, "
             "build/simt-asan-ubsan/fuzz)");
    add_duration(s, "--slice", campaign_.slice, "5m", "time of a task before the next one (5m)");
  }

  void add_reports(CLI::App *s, ReportPaths &reports) {
    add_text(s, "--junit", reports.junit, "FILE", "report as JUnit XML");
    add_text(s, "--sarif", reports.sarif, "FILE", "report as SARIF 2.1.0");
    add_text(s, "--markdown", reports.markdown, "FILE", "report for a comment on a pull request");
    add_text(s, "--html", reports.html, "FILE", "report as one page that needs nothing else");
  }

  /// Options that say whose kernels are run.
  void add_source(CLI::App *s) {
    auto *plugin = add_text(s, "--plugin", options.plugin, "LIB", "kernels of a shared library");
    add_text(s, "--worker", options.worker, "CMD",
             "kernels of a program that runs them, such as "
             "'python3 -m assay.worker FILE.py:FUNCTION'")
        ->excludes(plugin);
    add_duration(s, "--patience", options.patience, "60s",
                 "how long a call may take, and the start of a worker (60s; once a kernel took "
                 "longer, its next calls get 5s at most)");
  }

  void add_selection(CLI::App *s, Selection &selection) {
    add_text(s, "--kernel", selection.kernel, "K", "one kernel instead of all");
    add_text(s, "--property", selection.property, "P", "one property instead of all");
    add_text(s, "--target", selection.target, "T", "simt (default) or cuda");
    add_source(s);
    add_text(s, "--declared-by", options.declared_by, "FILE",
             "judge kernels by what FILE, of 'assay list kernels --json', says they declare");
    s->add_flag("--replay-scores", options.replay_scores,
                "the plugin's MMA has exactly the bits of oracle/bounds/block_fma.h: check T2");
    add_assume(s);
  }

  void add_assume(CLI::App *s) {
    add_text(
        s, "--assume", assume_, "WORDS",
        "what the interface excludes and is then not asked: no_empty_requests, finite_pool (no "
        "NaN where no request has keys)");
  }

  std::deque<Duration> durations_;
  std::string assume_;
  ListOptions list_;
  CheckOptions check_;
  FileOptions files_;
  MergeOptions merge_;
  BenchOptions bench_;
  MutantsOptions mutants_;
  NewOptions new_;
  GateOptions gate_;
  CampaignOptions campaign_;
};

/// Runs what was asked for over the kernels that the options name.
int run_command(Parser &parser, const assay_plugin &own, const CliStreams &streams,
                const char *commit) {
  parser.read_durations();
  parser.read_assume();
  const SessionOptions &options = parser.options;
  const assay_plugin *plugin = &own;
  std::shared_ptr<WorkerPool> workers;
  if (!options.plugin.empty()) plugin = load_plugin(options.plugin);
  if (!options.worker.empty()) {
    workers = std::make_shared<WorkerPool>(
        WorkerCommand{.line = options.worker, .patience = options.patience_or(kFirstPatience)});
    plugin = load_worker(*workers);
  }
  HeldPlugin held;
  if (!options.declared_by.empty()) {
    hold_to(*plugin, options.declared_by, held);
    plugin = &held.plugin;
  }
  const bool to_err = options.json_to_out();
  const CliStreams people{to_err ? streams.err : streams.out, streams.err,
                          to_err ? streams.err_terminal : streams.terminal};
  Session session{options, plugin, people, streams.out, workers, commit};
  session.check_json();
  if (session.isolates()) session.forker = start_forker();
  const int exit = parser.command(session);
  if (streams.out.flush() || exit != kExitPass) return exit;
  throw CliError(kExitHarness, "standard output: cannot write");
}

} // namespace

int run_cli(int argc, const char *const *argv, const assay_plugin &own, const CliStreams &streams,
            const char *commit) {
  const auto end = [&](int code, const std::string &line) {
    streams.err << "assay: " << line << "\n";
    return code;
  };
  Parser parser(version_text(own, commit));
  try {
    if (argc > 1 && is_python_command(argv[1])) run_in_python({argv + 1, argv + argc});
    parser.app.parse(argc, argv);
    return run_command(parser, own, streams, commit);
  } catch (const CLI::Success &e) { // --help, --version
    return parser.app.exit(e, streams.out, streams.err);
  } catch (const CLI::ParseError &e) {
    const bool no_command = parser.app.get_subcommands().empty();
    return end(kExitUsage, no_command ? parser.missing_command(e.what()) : words_of(e, parser.app));
  } catch (const CliError &e) {
    return end(e.code, e.what());
  } catch (const WorkerError &e) {
    return end(kExitHarness, e.what());
  } catch (const std::exception &e) {
    return end(kExitHarness, std::string("internal error: ") + e.what());
  }
}

} // namespace assay
