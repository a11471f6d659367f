// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/cli.h"

#include <ostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "properties/cli/plugin_loader.h"
#include "properties/cli/session.h"

namespace assay {
namespace {

struct Parser {
  CLI::App app{"Checks attention kernels against what must hold.", "assay"};
  CliOptions options;
  std::string budget;
  int (*command)(Session &) = nullptr;

  Parser() {
    app.add_option("--json", options.json,
                   "write the result to FILE; -: standard output, text to standard error")
        ->type_name("FILE");
    app.add_option("--seed", options.seed, "seed of everything drawn")->type_name("N");
    app.add_flag("--quiet", options.quiet, "only findings and errors");
    app.require_subcommand(1);
    app.fallthrough();
    auto sub = [&](const char *name, const char *what, int (*run)(Session &)) {
      CLI::App *s = app.add_subcommand(name, what);
      s->callback([this, run] { command = run; });
      return s;
    };
    CLI::App *list = sub("list", "kernels and properties, or the cells of bench", command_list);
    list->add_option("what", options.what, "kernels, properties or cells")
        ->check(CLI::IsMember({"kernels", "properties", "cells"}));
    list->add_option("--plugin", options.plugin, "kernels of a shared library")->type_name("LIB");

    CLI::App *check = sub("check", "draw cases and check properties", command_check);
    add_selection(check);
    auto *cases = check->add_option("--cases", options.cases, "cases per kernel and property (40)")
                      ->type_name("N")
                      ->check(CLI::Range(1, 100000000));
    check->add_option("--budget", budget, "time instead of a number of cases")
        ->type_name("60s")
        ->excludes(cases);
    check->add_option("--threads", options.threads, "worker threads (one per core)")
        ->type_name("N")
        ->check(CLI::Range(1, 256));
    check->add_option("--out", options.out, "folder for new findings (findings), replayed first")
        ->type_name("DIR");
    check
        ->add_option("--findings", options.findings,
                     "kept findings, replayed first (the source tree's corpus/findings)")
        ->type_name("DIR");

    CLI::App *replay = sub("replay", "check the cases of files", command_replay);
    add_files(replay, -1);
    CLI::App *shrink = sub("shrink", "make a failing case smaller", command_shrink);
    add_files(shrink, 1);
    shrink->add_option("--out", options.out, "file to write (FILE.min)")->type_name("FILE");
    CLI::App *explain = sub("explain", "why a case fails, or how close it comes", command_explain);
    add_files(explain, 1);
    CLI::App *bench = sub("bench", "time the cuda kernels against a plain read", command_bench);
    bench->add_option("--cells", options.cells, "cells of a JSON file instead of the standard ones")
        ->type_name("FILE");
    bench->add_option("--only", options.only, "only cells whose name contains TEXT")
        ->type_name("TEXT");
    bench->add_flag("--verify", options.verify, "judge the outputs after the timing");
    add_mutants();
  }

  void add_mutants() {
    auto run = command_mutants;
    CLI::App *s = app.add_subcommand("mutants", "which check notices which wrong kernel");
    s->callback([this, run] { command = run; });
    s->add_option("--kernel", options.kernel, "one kernel instead of all")->type_name("K");
    auto count = [&](const char *name, int &value, const char *what, int most) {
      s->add_option(name, value, what)->type_name("N")->check(CLI::Range(1, most));
    };
    count("--runs", options.runs, "inputs per mutant (20)", 100000);
    count("--keys", options.keys, "keys of the long request (509)", 100000);
    count("--splits", options.splits, "splits of a row (2)", 100);
    count("--threads", options.threads, "worker threads (one per core)", 256);
  }

  void add_selection(CLI::App *s) {
    s->add_option("--kernel", options.kernel, "one kernel instead of all")->type_name("K");
    s->add_option("--property", options.property, "one property instead of all")->type_name("P");
    s->add_option("--target", options.target, "simt (default) or cuda")->type_name("T");
    s->add_option("--plugin", options.plugin, "kernels of a shared library")->type_name("LIB");
    s->add_flag("--replay-scores", options.replay_scores,
                "the plugin's MMA has exactly the bits of oracle/block_fma.h: check T2");
  }
  void add_files(CLI::App *s, int count) {
    add_selection(s);
    auto *files = s->add_option("files", options.files, "case files")->required();
    if (count > 0) files->expected(count);
  }
};

} // namespace

int run_cli(int argc, const char *const *argv, const assay_plugin &own, const CliStreams &streams) {
  Parser parser;
  try {
    parser.app.parse(argc, argv);
  } catch (const CLI::Success &e) { // --help
    return parser.app.exit(e, streams.out, streams.err);
  } catch (const CLI::ParseError &e) {
    streams.err << "assay: " << e.what() << "\n";
    return kExitUsage;
  }
  try {
    if (!parser.budget.empty()) parser.options.budget = parse_duration(parser.budget);
    const assay_plugin *plugin =
        parser.options.plugin.empty() ? &own : load_plugin(parser.options.plugin);
    const CliStreams people{parser.options.json_to_out() ? streams.err : streams.out, streams.err,
                            streams.terminal};
    Session session{parser.options, plugin, people, streams.out};
    session.check_json();
    return parser.command(session);
  } catch (const CliError &e) {
    streams.err << "assay: " << e.what() << "\n";
    return e.code;
  } catch (const std::exception &e) {
    streams.err << "assay: internal error: " << e.what() << "\n";
    return kExitHarness;
  }
}

} // namespace assay
