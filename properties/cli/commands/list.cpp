// SPDX-License-Identifier: Apache-2.0
#include <ostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "kernels/abi/kernel_table.h"
#include "kernels/bench/cells/cells_file.h"
#include "properties/cli/commands/commands.h"
#include "properties/cli/plugins/declaration_file.h"
#include "properties/run/requirements.h"

namespace assay {
namespace {

constexpr const char *kFamilies[] = {"paged", "cascade", "merge_state", "merge_states"};

/// Tables that did not pass the loader may hold any number.
const char *family_name(assay_family family) {
  return family >= ASSAY_FAMILY_PAGED && family <= ASSAY_FAMILY_MERGE_STATES ? kFamilies[family]
                                                                             : "unknown";
}

/// "1 x 2048, 64 x 256": segments and their tokens.
std::string levels_text(const bench::CascadeCell &cell) {
  std::string text;
  for (const bench::CascadeLevel &level : cell.levels)
    text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", level.segments, level.tokens);
  return text;
}

void list_cells(std::ostream &out) {
  out << fmt::format("{:<32} {:>5} {:>7} {:<12} {:>3} {:>3} {:>4} {:>5} {:<5} {:>7}\n", "cell",
                     "batch", "seq", "lengths", "qo", "kv", "d", "page", "dtype", "KV MB");
  for (const bench::Cell &c : bench::standard_cells())
    out << fmt::format("{:<32} {:>5} {:>7} {:<12} {:>3} {:>3} {:>4} {:>5} {:<5} {:>7.1f}\n", c.name,
                       c.batch, c.seq, bench::name_of(c.lengths), c.num_qo_heads, c.num_kv_heads,
                       c.head_dim, c.page_size, bench::name_of(c.kv_dtype),
                       bench::kv_bytes(c, bench::cell_lengths(c)) * 1e-6);
  out << fmt::format("\n{:<32} {:>5} {:>3} {:>3} {:>4} {:>5} {:>7} {}\n", "cell", "batch", "qo",
                     "kv", "d", "page", "KV MB", "levels");
  for (const bench::CascadeCell &c : bench::standard_cascade_cells())
    out << fmt::format("{:<32} {:>5} {:>3} {:>3} {:>4} {:>5} {:>7.1f} {}\n", c.name, c.batch,
                       c.num_qo_heads, c.num_kv_heads, c.head_dim, c.page_size,
                       bench::kv_bytes(c) * 1e-6, levels_text(c));
  out << fmt::format("\n{:<32} {:>5} {:>6} {:>5} {:>4} {:>7}\n", "cell", "rows", "states", "heads",
                     "d", "MB");
  for (const bench::MergeCell &c : bench::standard_merge_cells())
    out << fmt::format("{:<32} {:>5} {:>6} {:>5} {:>4} {:>7.1f}\n", c.name, c.rows, c.states,
                       c.num_heads, c.head_dim,
                       (bench::read_bytes(c) + bench::written_bytes(c)) * 1e-6);
}

nlohmann::json property_json(const Property &p, const assay_plugin &plugin) {
  const PropertyWords words = words_of(p);
  nlohmann::json classes = nlohmann::json::object();
  for (const assay_kernel &kernel : kernels_in(plugin))
    if (applies(p, kernel)) classes[family_name(kernel.family)] = required_classes(p, kernel);
  return {{"name", p.name},
          {"families", words.families},
          {"needs", words.needs},
          {"about", words.about},
          {"without", words.without},
          {"sets", words.sets},
          {"comparison", name_of(p.comparison)},
          {"statement", p.statement},
          {"catches", p.catches},
          {"cost", p.cost},
          {"classes", classes}};
}

/// What a reader of the list should know of a kernel here, or "".
std::string remark(const Session &session, const assay_kernel &kernel, const std::string &reason) {
  if (!reason.empty()) return "  (not runnable here: " + reason + ")";
  if (session.third_party() || session.replays_scores(kernel)) return "";
  return fmt::format("  (tensor cores: {} products a block and {} bits, scores not replayed)",
                     kernel.arithmetic.mma_block, kernel.arithmetic.mma_fraction_bits);
}

void list_properties(const Session &session, nlohmann::json &document) {
  std::ostream &out = session.streams.out;
  out << fmt::format("{:<26} {:<13} {}\n", "property", "compared", "statement");
  for (const Property &p : properties()) {
    out << fmt::format("{:<26} {:<13} {}\n", p.name, name_of(p.comparison), p.statement);
    document["properties"].push_back(property_json(p, *session.plugin));
  }
}

} // namespace

int command_list(Session &session, const ListOptions &options) {
  nlohmann::json document;
  std::ostream &out = session.streams.out;
  const std::string &what = options.what;
  if (what == "cells") {
    list_cells(out);
    document = bench::cells_to_json(bench::standard_cell_set());
  }
  if (what.empty() || what == "kernels") {
    document["fields"] = declaration_fields();
    document["promises"] = promise_rows();
    out << fmt::format("{:<24} {:<8} {:<14} {}\n", "kernel", "target", "family", "determinism");
    for (const assay_kernel &k : kernels_in(*session.plugin)) {
      const char *same = k.determinism == ASSAY_DETERMINISM_RUN_TO_RUN ? "run to run" : "none";
      std::string reason = target_unavailable(k.target);
      out << fmt::format("{:<24} {:<8} {:<14} {}{}\n", k.name, target_name(k.target),
                         family_name(k.family), same, remark(session, k, reason));
      document["kernels"].push_back({{"name", k.name},
                                     {"target", target_name(k.target)},
                                     {"family", family_name(k.family)},
                                     {"determinism", same},
                                     {"runnable", reason.empty()},
                                     {"declaration", declaration_json(k)}});
    }
  }
  if (what.empty()) out << "\n";
  if (what.empty() || what == "properties") list_properties(session, document);
  return session.finish(document, kExitPass);
}

} // namespace assay
