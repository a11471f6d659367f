// SPDX-License-Identifier: Apache-2.0
// report_samples FOLDER: reports of every kind and format, for the checks of
// properties/report/tests. Most are of real runs; those made by hand have what a quick run does not
// show.
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "corpus/mutants/mutants.h"
#include "properties/cli/cli.h"
#include "properties/run/tests/mutant_cases.h"
#include "properties/tests/reference_kernels.h"
#include "properties/tools/campaign/page.h"
#include "properties/tools/gate/reports.h"
#include "properties/tools/gate/tests/gate_documents.h"
#include "properties/tools/report/html.h"
#include "properties/tools/report/junit.h"
#include "properties/tools/report/sarif.h"
#include "properties/tools/report/tests/report_documents.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

void write(const std::string &name, const std::string &text) {
  std::ofstream(name, std::ios::binary) << text;
}

/// The program over `plugin`, with its reports in NAME.xml and so on. What it says goes to
/// NAME.txt.
void run(const assay_plugin &plugin, const std::string &name, Words words, int expected) {
  for (const char *format : {"junit", "sarif", "html"})
    words.insert(words.end(),
                 {std::string("--") + format,
                  name + (std::string(format) == "junit" ? ".xml" : "." + std::string(format))});
  words.insert(words.begin(), "assay");
  std::vector<const char *> argv;
  for (const std::string &word : words)
    argv.push_back(word.c_str());
  std::ostringstream out;
  const int code = run_cli(static_cast<int>(argv.size()), argv.data(), plugin, {out, out, false});
  write(name + ".txt", out.str());
  if (code == expected) return;
  std::cerr << name << ": exit " << code << ", expected " << expected << "\n" << out.str();
  std::exit(1);
}

void check(const assay_kernel &kernel, const std::string &name, Words more, int expected) {
  assay_plugin plugin = reference::plugin();
  plugin.kernels = &kernel;
  plugin.num_kernels = 1;
  Words words = {"check", "--out", name + "-findings"};
  words.insert(words.end(), more.begin(), more.end());
  run(plugin, name, words, expected);
}

assay_status first_lse(const void *params) {
  const auto &p = *static_cast<const assay_merge_state_params *>(params);
  for (int r = 0; r < p.num_rows; ++r)
    for (int h = 0; h < p.num_heads; ++h)
      if (p.lse) p.lse[r * p.lse_stride_row + h * p.lse_stride_head] = 1.5f;
  return ASSAY_OK;
}

/// Two mistakes of two kernels, one of which refuses in hostile words.
void findings() {
  std::vector<assay_kernel> kernels = {reference::kernel("reference_merge_state"),
                                       reference::kernel("reference_merge_states")};
  kernels[0].run = first_lse;
  kernels[1].run = [](const void *) -> assay_status { return ASSAY_INVALID_ARGUMENT; };
  kernels[1].last_error = [] {
    return "\xff\x01 \xe2\x80\xae</script><script>alert(1)</script> ]]> \"'&<b>";
  };
  assay_plugin plugin = reference::plugin();
  plugin.kernels = kernels.data();
  plugin.num_kernels = 2;
  run(plugin, "check-findings", {"check", "--out", "check-findings", "--cases", "4"}, kExitFinding);
}

/// A hazard has the line of the kernel that runs into it.
void hazard() {
  const mutants::Mutant *mutant = mutants::find("k_wait_one_late");
  static int id = mutant->id;
  static assay_kernel right = *mutants::find_kernel("paged_attention_v1");
  assay_kernel wrong = right;
  wrong.run = [](const void *params) {
    const mutants::Activate active(id);
    return right.run(params);
  };
  check(wrong, "check-hazard",
        {"--property", "within_budget", "--only", "dtype=bf16,kv_dtype=same,head_dim=64", "--cases",
         "2"},
        kExitFinding);
}

void made_by_hand() {
  const report::json check = report::document();
  write("check-hostile.xml", report::junit(check));
  write("check-hostile.sarif", report::sarif(check));
  write("check-hostile.html", report::html(check));
  for (const auto &[name, document] :
       {std::pair("gate-hostile", gate::document()), {"gate-undecided", gate::undecided()}}) {
    write(std::string(name) + ".xml", gate::junit(document));
    write(std::string(name) + ".sarif", gate::sarif(document));
    write(std::string(name) + ".html", gate::html(document));
  }
}

void campaigns() {
  campaign::Options options;
  options.version = "0.1.0";
  campaign::Totals totals;
  std::vector<std::string> tasks;
  for (const char *name : {"fuzz_tile", "fuzz_merge", "check"}) {
    tasks.push_back(name);
    campaign::TaskTotals &t = totals.tasks[name];
    t.slices = 12, t.seconds = 3600, t.executions = 10'800'000, t.features = 1200;
    for (int i = 1; i <= 12; ++i)
      t.growth.push_back({300.0 * i, 900'000u * i, static_cast<uint64_t>(1200 - 1200 / (i + 1))});
  }
  totals.sessions = 2, totals.seconds = 10800;
  totals.residual.why_none = "fewer than 8 runs of check";
  write("campaign-nothing.html", campaign::page(campaign::report_of(options, tasks, totals)));
  totals.tasks["fuzz_merge"].trouble = report::kHostile;
  totals.tasks["fuzz_merge"].lost = 3, totals.tasks["fuzz_merge"].failing = 3;
  totals.findings["a:b"] = {"fuzz_merge", report::kHostile,
                            "findings/fuzz_merge-" + std::string(40, 'a'), 7, 0};
  totals.residual = {
      .expected = 0.4, .low = 0.1, .high = 0.9, .samples = 40, .species = 712, .why_none = ""};
  write("campaign-findings.html", campaign::page(campaign::report_of(options, tasks, totals)));
}

} // namespace
} // namespace assay

int main(int argc, char **argv) {
  using namespace assay;
  if (argc != 2) return 2;
  fs::remove_all(argv[1]);
  fs::create_directories(argv[1]);
  fs::current_path(argv[1]);
  findings();
  hazard();
  check(reference::kernel("reference_merge_state"), "check-pass", {"--cases", "4"}, kExitPass);
  run(reference::plugin(), "gate-pass",
      {"gate", "--judge", ASSAY_PROGRAM, "--base-plugin", ASSAY_TINY_PLUGIN, "--head-plugin",
       ASSAY_TINY_PLUGIN, "--cases", "20", "--out", "gate-pass"},
      kExitPass);
  run(reference::plugin(), "gate-blocked",
      {"gate", "--judge", ASSAY_PROGRAM, "--base-plugin", ASSAY_TINY_PLUGIN, "--head-plugin",
       ASSAY_WRONG_PLUGIN, "--cases", "20", "--out", "gate-blocked"},
      kExitFinding);
  made_by_hand();
  campaigns();
}
