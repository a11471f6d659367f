// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/cli.h"

#include <algorithm>
#include <charconv>
#include <ostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/cli/parse_error.h"
#include "properties/cli/plugins/declaration_file.h"
#include "properties/cli/plugins/plugin_loader.h"
#include "properties/cli/plugins/worker_loader.h"
#include "properties/cli/session/session.h"
#include "properties/cli/session/version.h"
#include "properties/plugins/arithmetics.h"

namespace assay {
namespace {

/// A seed as it is written, not as it wraps around.
struct SeedText : CLI::Validator {
  SeedText() : CLI::Validator("") {
    func_ = [](std::string &text) -> std::string {
      uint64_t value = 0;
      auto [at, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (ec == std::errc() && at == text.data() + text.size()) return "";
      return "'" + text + "' is not an integer in 0 .. 18446744073709551615";
    };
  }
};

/// An unset shell variable must not mean "everything" or "nowhere".
struct NotEmpty : CLI::Validator {
  NotEmpty() : CLI::Validator("") {
    func_ = [](std::string &text) -> std::string { return text.empty() ? "is empty" : ""; };
  }
};

struct OneOf : CLI::Validator {
  explicit OneOf(std::vector<std::string> words) : CLI::Validator("") {
    func_ = [words](std::string &text) -> std::string {
      if (std::find(words.begin(), words.end(), text) != words.end()) return "";
      return fmt::format("'{}' is none of {}", text, fmt::join(words, ", "));
    };
  }
};

constexpr const char *kFooter =
    "Exit codes: 0 pass, 1 finding, 2 usage or a bad file, 3 nothing here can run it,\n"
    "4 the harness failed, could not decide or proved nothing.";

struct Parser {
  CLI::App app{"Checks attention kernels against what must hold.", "assay"};
  CliOptions options;
  std::string budget, patience, slice;
  int (*command)(Session &) = nullptr;

  explicit Parser(const std::string &version) {
    app.add_option("--json", options.json,
                   "write the result to FILE; -: standard output, text to standard error")
        ->type_name("FILE");
    app.add_option("--seed", options.seed, "seed of everything drawn (1)")
        ->type_name("N")
        ->check(SeedText());
    app.add_flag("--quiet", options.quiet, "only findings and errors");
    app.require_subcommand(1);
    app.set_version_flag("--version", version);
    app.footer(kFooter);
    app.fallthrough();
    auto sub = [&](const char *name, const char *what, int (*run)(Session &)) {
      CLI::App *s = app.add_subcommand(name, what);
      s->callback([this, run] { command = run; });
      s->footer("Of every command: --json FILE, --seed N, --quiet (assay --help).");
      return s;
    };
    CLI::App *list = sub("list", "kernels and properties, or the cells of bench", command_list);
    list->add_option("what", options.what, "kernels, properties or cells")
        ->check(OneOf({"kernels", "properties", "cells"}));
    add_source(list);

    CLI::App *check = sub("check", "draw cases and check properties", command_check);
    add_selection(check);
    auto *cases = check->add_option("--cases", options.cases, "cases per kernel and property (40)")
                      ->type_name("N")
                      ->check(in_range(1, 100000000));
    check
        ->add_option("--budget", budget,
                     "time instead of a number of cases; a case of every class that must occur "
                     "comes on top (about 40 s for all kernels)")
        ->type_name("60s")
        ->excludes(cases);
    check
        ->add_option("--only", options.only,
                     "cases with these values of their fields only: dtype=bf16,head_dim=64/128")
        ->type_name("FIELDS");
    check->add_option("--threads", options.threads, "worker threads (one per core, 16 at most)")
        ->type_name("N")
        ->check(in_range(1, 256));
    check->add_flag("--fail-fast", options.fail_fast,
                    "end at the first finding, once it is shrunk and written");
    add_reports(check);
    check->add_flag("--isolate", options.isolate,
                    "kernels in processes of their own (always for plugins)");
    check->add_option("--out", options.out, "folder for new findings (findings), replayed first")
        ->type_name("DIR");
    check
        ->add_option("--findings", options.findings,
                     "kept findings, replayed first (those beside this program, or corpus/findings "
                     "of the tree around it or around this folder)")
        ->type_name("DIR");

    CLI::App *replay =
        sub("replay",
            "check the cases of files; on --target cuda also those that no host holds (corpus/big)",
            command_replay);
    add_files(replay, -1);
    CLI::App *shrink = sub("shrink", "make a failing case smaller", command_shrink);
    add_files(shrink, 1);
    shrink->add_option("--out", options.out, "file to write (FILE.min)")->type_name("FILE");
    CLI::App *explain = sub("explain", "why a case fails, or how close it comes", command_explain);
    add_files(explain, 1)->required(false);
    explain->add_flag("--declaration", options.declaration,
                      "what each field of a kernel's declaration adds to its bounds, on a typical "
                      "case or that of the file");
    CLI::App *merge = sub("merge-reports", "the --json documents of several runs of check as one",
                          command_merge_reports);
    merge->add_option("files", options.files, "documents of check --json, of other seeds each")
        ->required()
        ->type_name("FILE...");
    add_reports(merge);
    CLI::App *bench = sub("bench", "time the cuda kernels against a plain read", command_bench);
    bench->add_option("--cells", options.cells, "cells of a JSON file instead of the standard ones")
        ->type_name("FILE");
    bench->add_option("--only", options.only, "only cells whose name contains TEXT")
        ->type_name("TEXT");
    auto *verify =
        bench->add_flag("--verify", options.verify, "judge the outputs after the timing");
    bench
        ->add_flag("--host", options.host_only,
                   "time what calls cost the host, and nothing of the device")
        ->excludes(verify);
    auto *against = bench->add_option("--against", options.against,
                                      "time the kernels of --plugin (or ours) beside those of this "
                                      "library, in turns: which is slower?");
    against->type_name("LIB");
    bench->add_option("--plugin", options.plugin, "with --against: the library that is judged")
        ->type_name("LIB")
        ->needs(against);
    bench->add_option("--kernel", options.kernels, "with --against: these kernels instead of all")
        ->type_name("K...")
        ->needs(against);
    bench
        ->add_option("--tree-splits", options.tree_splits,
                     "of cascades: tree_attention with such num_splits, too")
        ->delimiter(',')
        ->check(in_range(1, 65536));
    add_mutants();
    add_new(sub("new", "write a plugin's project: new plugin DIR --paged", command_new));
    CLI::App *judge =
        sub("judge", "calls of others, in files: a command of the Python package", command_judge);
    judge->add_option("files", options.files, ".npz files, or folders of dumps");
    add_gate(sub("gate", "whether a change of kernels may go in", command_gate));
    add_campaign(
        sub("campaign", "fuzz and draw for hours; goes on where it was", command_campaign));
    CLI::App *fuzz = sub("fuzz", "one fuzz target, as campaign runs it", command_fuzz);
    fuzz->add_option("target", options.what, "such as tile or fuzz_tile")->required();
    add_hours(fuzz, "60s");
    for (CLI::App *s : app.get_subcommands({}))
      refuse_empty(*s);
    refuse_empty(app);
  }

  static void refuse_empty(CLI::App &s) {
    for (CLI::Option *option : s.get_options())
      if (option->get_expected_max() > 0) option->check(NotEmpty());
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

  void add_mutants() {
    auto run = command_mutants;
    CLI::App *s = app.add_subcommand("mutants", "which check notices which wrong kernel");
    s->callback([this, run] { command = run; });
    s->add_option("--kernel", options.kernel, "one kernel instead of all")->type_name("K");
    s->add_option("--mutant", options.mutants, "these instead of all")->type_name("NAME...");
    s->add_flag("--default-draw", options.default_draw,
                "draw as check does, until a property fails");
    s->add_flag("--usual-rules", options.usual_rules,
                "draw as check does, N(0,1), and judge by 1e-2, 1e-3, 98 % and 2x");
    auto count = [&](const char *name, int &value, const char *what, int most) {
      s->add_option(name, value, what)->type_name("N")->check(in_range(1, most));
    };
    count("--runs", options.runs, "inputs per mutant (20)", 100000);
    count("--keys", options.keys, "keys of the long request (509)", 100000);
    count("--splits", options.splits, "splits of a row (2)", 100);
    count("--threads", options.threads, "worker threads (one per core)", 256);
  }

  void add_new(CLI::App *s) {
    NewPlugin &fresh = options.fresh;
    s->add_option("what", fresh.what, "plugin, the only thing there is")
        ->required()
        ->check(OneOf({"plugin"}));
    s->add_option("dir", fresh.folder, "its folder: absent or empty")->required()->type_name("DIR");
    s->add_flag("--paged", fresh.paged, "a kernel of paged attention");
    s->add_flag("--cascade", fresh.cascade, "a kernel of cascade attention");
    s->add_flag("--merge", fresh.merge, "kernels that merge two and many attention states");
    s->add_flag("--cuda", fresh.cuda, "in CUDA instead of C++");
    s->add_flag("--python", fresh.python, "in NumPy instead of C++");
    s->add_option("--name", fresh.name, "of library and kernel (my_kernel)")->type_name("NAME");
    s->add_option("--like", fresh.like, "named arithmetic that its declaration starts from")
        ->type_name("NAME")
        ->check(OneOf(plugins::arithmetic_names()));
  }

  void add_reports(CLI::App *s) {
    s->add_option("--junit", options.junit, "report as JUnit XML")->type_name("FILE");
    s->add_option("--sarif", options.sarif, "report as SARIF 2.1.0")->type_name("FILE");
    s->add_option("--markdown", options.markdown, "report for a comment on a pull request")
        ->type_name("FILE");
    s->add_option("--html", options.html, "report as one page that needs nothing else")
        ->type_name("FILE");
  }

  void add_gate(CLI::App *s) {
    s->add_option("--base", options.base, "commit that the change is judged against")
        ->type_name("REF");
    s->add_option("--head", options.head, "the change (the files as they lie there)")
        ->type_name("REF");
    s->add_option("--base-plugin", options.base_plugin, "instead: library before the change")
        ->type_name("LIB");
    s->add_option("--head-plugin", options.head_plugin, "and after it")->type_name("LIB");
    s->add_option("--budget", budget, "time for everything (assay.toml's, or 10m)")
        ->type_name("10m");
    s->add_option("--cases", options.cases,
                  "cases of the long run, per kernel and property, instead of what the time allows")
        ->type_name("N")
        ->check(in_range(1, 100000000));
    s->add_flag("--all", options.all, "every kernel as if the change touched it");
    s->add_option("--accept", options.accept, "red lines that a person lets pass, by their id")
        ->type_name("ID...");
    s->add_option("--out", options.out,
                  "folder for the cases of findings (build/gate/findings; of libraries: findings)")
        ->type_name("DIR");
    s->add_option("--target", options.target, "simt (default), or cuda: speed is compared, too")
        ->type_name("T");
    s->add_option("--judge", options.judge, "program that judges libraries (this one)")
        ->type_name("ASSAY");
    add_reports(s);
  }

  void add_hours(CLI::App *s, const char *otherwise) {
    s->add_option("--budget", budget, fmt::format("time to spend ({})", otherwise))
        ->type_name("60s");
    s->add_option("--dir", options.dir, "folder of everything it keeps")->type_name("DIR");
    s->add_option("--fuzzers", options.fuzzers,
                  "folders of fuzz_* programs, taken in turn (build/fuzz/fuzz, "
                  "build/simt-asan-ubsan/fuzz)")
        ->type_name("DIR...");
    s->add_option("--slice", slice, "time of a task before the next one (5m)")->type_name("5m");
  }

  void add_campaign(CLI::App *s) {
    s->add_option("--hours", options.hours, "time to spend (8)")
        ->type_name("H")
        ->check(in_range(0.001, 10000.0));
    add_hours(s, "8h");
    s->add_option("--jobs", options.threads, "tasks side by side (one per core)")
        ->type_name("N")
        ->check(in_range(1, 256));
    add_source(s);
  }

  /// Options that say whose kernels are run.
  void add_source(CLI::App *s) {
    auto *plugin = s->add_option("--plugin", options.plugin, "kernels of a shared library");
    plugin->type_name("LIB");
    auto *worker = s->add_option("--worker", options.worker,
                                 "kernels of a program that runs them, such as "
                                 "'python3 -m assay.worker FILE.py:FUNCTION'");
    worker->type_name("CMD")->excludes(plugin);
    s->add_option("--patience", patience,
                  "how long a call may take, and the start of a worker (60s; once a kernel took "
                  "longer, its next calls get 5s at most)")
        ->type_name("60s");
  }

  void add_selection(CLI::App *s) {
    s->add_option("--kernel", options.kernel, "one kernel instead of all")->type_name("K");
    s->add_option("--property", options.property, "one property instead of all")->type_name("P");
    s->add_option("--target", options.target, "simt (default) or cuda")->type_name("T");
    add_source(s);
    s->add_option("--declared-by", options.declared_by,
                  "judge kernels by what FILE, of 'assay list kernels --json', says they declare")
        ->type_name("FILE");
    s->add_flag("--replay-scores", options.replay_scores,
                "the plugin's MMA has exactly the bits of oracle/bounds/block_fma.h: check T2");
  }
  CLI::Option *add_files(CLI::App *s, int count) {
    add_selection(s);
    auto *files =
        s->add_option("files", options.files, count == 1 ? "a .case" : "one .case or more");
    s->parse_complete_callback([this, s, count] {
      if (count > 0 && options.files.size() > static_cast<size_t>(count))
        throw CliError(kExitUsage, fmt::format("{}: takes one file, and got {}", s->get_name(),
                                               options.files.size()));
    });
    return files->required();
  }
};

} // namespace

namespace {

WorkerCommand worker_command(const CliOptions &options) {
  return {.line = options.worker, .patience = options.patience_or(kFirstPatience)};
}

} // namespace

int run_cli(int argc, const char *const *argv, const assay_plugin &own, const CliStreams &streams,
            const char *commit) {
  Parser parser(version_text(own, commit));
  try {
    parser.app.parse(argc, argv);
  } catch (const CLI::Success &e) { // --help, --version
    return parser.app.exit(e, streams.out, streams.err);
  } catch (const CLI::ParseError &e) {
    const bool no_command = parser.app.get_subcommands().empty();
    streams.err << "assay: "
                << (no_command ? parser.missing_command(e.what()) : words_of(e, parser.app))
                << "\n";
    return kExitUsage;
  } catch (const CliError &e) {
    streams.err << "assay: " << e.what() << "\n";
    return e.code;
  }
  try {
    if (!parser.budget.empty()) parser.options.budget = parse_duration(parser.budget);
    if (!parser.slice.empty()) parser.options.slice = parse_duration(parser.slice);
    if (!parser.patience.empty()) {
      const CliOptions &o = parser.options;
      if (o.plugin.empty() && o.worker.empty() && !o.isolate)
        throw CliError(kExitUsage, "--patience is for kernels in processes of their own: --plugin, "
                                   "--worker or --isolate");
      parser.options.patience = parse_duration(parser.patience);
    }
    const assay_plugin *plugin = &own;
    std::shared_ptr<WorkerPool> workers;
    if (!parser.options.plugin.empty()) plugin = load_plugin(parser.options.plugin);
    if (!parser.options.worker.empty()) {
      workers = std::make_shared<WorkerPool>(worker_command(parser.options));
      plugin = load_worker(*workers);
    }
    HeldPlugin held;
    if (!parser.options.declared_by.empty()) {
      hold_to(*plugin, parser.options.declared_by, held);
      plugin = &held.plugin;
    }
    const bool to_err = parser.options.json_to_out();
    const CliStreams people{to_err ? streams.err : streams.out, streams.err,
                            to_err ? streams.err_terminal : streams.terminal};
    Session session{parser.options, plugin, people, streams.out, workers, commit};
    session.check_json();
    const int exit = parser.command(session);
    if (streams.out.flush() || exit != kExitPass) return exit;
    throw CliError(kExitHarness, "standard output: cannot write");
  } catch (const CliError &e) {
    streams.err << "assay: " << e.what() << "\n";
    return e.code;
  } catch (const WorkerError &e) {
    streams.err << "assay: " << e.what() << "\n";
    return kExitHarness;
  } catch (const std::exception &e) {
    streams.err << "assay: internal error: " << e.what() << "\n";
    return kExitHarness;
  }
}

} // namespace assay
