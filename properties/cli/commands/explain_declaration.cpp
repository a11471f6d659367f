// SPDX-License-Identifier: Apache-2.0
// explain --declaration: what each field of a kernel's declaration costs, on a typical case or a
// given one. No kernel runs: only its bounds are computed.
#include <algorithm>
#include <cmath>
#include <optional>
#include <ostream>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "kernels/abi/kernel_table.h"
#include "oracle/judge/declaration_cost.h"
#include "properties/call/materialise.h"
#include "properties/case/codec.h"
#include "properties/cli/commands/commands.h"
#include "properties/cli/findings/case_file.h"
#include "properties/cli/plugins/declared_values.h"
#include "properties/cli/plugins/envelopes.h"
#include "properties/sut/oracle_call.h"

namespace assay {
namespace {

using oracle::BoundSums;
using oracle::BudgetTerms;
using oracle::DeclarationCost;
using oracle::DeclaredField;

struct Term {
  const char *name;
  double BudgetTerms::*value;
};
constexpr Term kTerms[] = {{"weights", &BudgetTerms::weights},
                           {"p_rounding", &BudgetTerms::p_rounding},
                           {"accumulation", &BudgetTerms::accumulation},
                           {"normalisation", &BudgetTerms::normalisation},
                           {"merge", &BudgetTerms::merge},
                           {"output_rounding", &BudgetTerms::output_rounding},
                           {"flush", &BudgetTerms::flush}};

/// Two requests of some hundred keys in normal values; merges of eight states.
Problem typical_case(Family family) {
  Problem p = decode_family({}, large_limits(), family);
  p.q = {Regime::kNormal, 0, 1};
  p.k = {Regime::kNormal, 0, 2};
  p.v = {Regime::kNormal, 0, 3};
  p.batch = 2;
  p.head_dim = 128;
  if (is_merge(p)) {
    p.num_states = 8;
    p.lse_regime = LseRegime::kNormal;
    return p;
  }
  p.group_size = 4;
  p.page_size = 16;
  p.seq_lens = {512, 300};
  p.levels = {{16, 0, {2}, {300}}, {16, 0, {1, 1}, {200, 100}}};
  if (family == Family::kPaged) p.levels.clear();
  if (family == Family::kCascade) p.seq_lens.clear();
  return p;
}

/// As far as the kernel can be asked here, a case that it takes.
Problem case_of(const Session &session, const assay_kernel &kernel) {
  const Problem p = typical_case(static_cast<Family>(kernel.family));
  if (!session.workers && !target_unavailable(kernel.target).empty()) return p;
  const Envelopes envelopes = envelopes_of(session, {&kernel});
  const auto narrow = envelopes.find(&kernel);
  return narrow == envelopes.end() ? p : narrow->second.fit(p, full_limits());
}

DeclarationCost cost_of(const assay_kernel &kernel, const Problem &p) {
  const Tensors tensors = materialise(p);
  const OracleCall call = oracle_call(tensors, kernel);
  return declaration_cost(call.rows, call.model);
}

/// What a field adds to the bounds, as parts of them.
struct Shares {
  double o, arithmetic, lse; ///< arithmetic: of O's bound without the rounding of the output
  std::vector<std::pair<const char *, double>> terms; ///< of O's bound, the largest first
};

double part(double difference, double whole) { return whole > 0 ? difference / whole : 0; }

/// The shares of `with` less `without` in `whole`.
Shares shares_of(const BoundSums &whole, const BoundSums &with, const BoundSums &without) {
  const auto rounding = &BudgetTerms::output_rounding;
  const auto less = [&](auto term) { return with.o.*term - without.o.*term; };
  Shares out{part(less(&BudgetTerms::total), whole.o.total),
             part(less(&BudgetTerms::total) - less(rounding), whole.o.total - whole.o.*rounding),
             part(with.lse - without.lse, whole.lse),
             {}};
  for (const Term &term : kTerms)
    out.terms.emplace_back(term.name, part(less(term.value), whole.o.total));
  std::stable_sort(out.terms.begin(), out.terms.end(),
                   [](const auto &a, const auto &b) { return a.second > b.second; });
  return out;
}

/// The part of the declared bounds that field i adds, and what stays with every field exact.
Shares share_of_field(const DeclarationCost &cost, size_t i) {
  return shares_of(cost.declared, cost.declared, cost.fields[i]);
}
Shares share_of_rest(const DeclarationCost &cost) {
  return shares_of(cost.declared, cost.exact, BoundSums{});
}

std::string percent(double x) {
  if (x == 0) return "0";
  if (std::fabs(x) < 1e-5) return "< 0.001 %";
  return fmt::format("{:.{}f} %", 100 * x, std::fabs(x) < 1e-3 ? 3 : 1);
}

std::string terms_text(const Shares &shares) {
  std::string out;
  for (const auto &[name, size] : shares.terms)
    if (size > 0 && size >= 0.01 * shares.o)
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, percent(size));
  if (!out.empty()) return out;
  return shares.lse > 0 ? "the LSE" : "-";
}

nlohmann::json to_json(const Shares &shares) {
  nlohmann::json terms = nlohmann::json::object();
  for (const auto &[name, size] : shares.terms)
    terms[name] = size;
  return {{"o", shares.o},
          {"o_before_rounding", shares.arithmetic},
          {"lse", shares.lse},
          {"terms", terms}};
}

void print_row(std::ostream &out, const std::string &name, const std::string &value,
               const Shares &shares) {
  out << fmt::format("  {:<30} {:<12} {:>10} {:>16} {:>10}   {}\n", name, value, percent(shares.o),
                     percent(shares.arithmetic), percent(shares.lse), terms_text(shares));
}

void print(std::ostream &out, const assay_kernel &kernel, const DeclarationCost &cost) {
  const auto outputs = static_cast<double>(std::max<uint64_t>(cost.outputs, 1));
  out << fmt::format("{}: bound {:.2e} in the mean over {} elements of O, {:.2e} of |O|\n",
                     kernel.name, cost.declared.o.total / outputs, cost.outputs,
                     part(cost.declared.o.total, cost.magnitude));
  out << fmt::format("  {:<30} {:<12} {:>10} {:>16} {:>10}   {}\n", "field", "declared", "of O",
                     "before rounding", "of LSE", "pays for, of O");
  const auto &fields = oracle::declared_fields();
  std::vector<std::string> free;
  for (size_t i = 0; i < fields.size(); ++i) {
    const Shares shares = share_of_field(cost, i);
    const std::string value = declared_value(kernel.arithmetic, fields[i].name);
    if (shares.o == 0 && shares.lse == 0)
      free.push_back(fmt::format("{} ({})", fields[i].name, value));
    else
      print_row(out, fields[i].name, value, shares);
  }
  print_row(out, "what no field takes away", "", share_of_rest(cost));
  out << fmt::format("  of no cost here: {}\n",
                     free.empty() ? "none" : fmt::format("{}", fmt::join(free, ", ")));
}

nlohmann::json to_json(const assay_kernel &kernel, const Problem &p, const DeclarationCost &cost) {
  nlohmann::json rows = nlohmann::json::array();
  const auto &fields = oracle::declared_fields();
  for (size_t i = 0; i < fields.size(); ++i) {
    nlohmann::json row = to_json(share_of_field(cost, i));
    row["name"] = fields[i].name;
    row["declared"] = declared_value(kernel.arithmetic, fields[i].name);
    row["exact"] = fields[i].exact;
    rows.push_back(row);
  }
  return {{"kernel", kernel.name},
          {"case", format_problem(p)},
          {"outputs", cost.outputs},
          {"bound", part(cost.declared.o.total, static_cast<double>(cost.outputs))},
          {"relative", part(cost.declared.o.total, cost.magnitude)},
          {"fields", rows},
          {"rest", to_json(share_of_rest(cost))}};
}

/// Kernels by name and target; no device is needed to read what they declare.
std::vector<const assay_kernel *> declared_kernels(const Session &session, const std::string &name,
                                                   const std::string &target) {
  std::vector<const assay_kernel *> out;
  std::string known;
  for (const assay_kernel &kernel : kernels_in(*session.plugin)) {
    if (!target.empty() && target != target_name(kernel.target)) continue;
    known += (known.empty() ? "" : ", ") + std::string(kernel.name);
    if (name.empty() || name == kernel.name) out.push_back(&kernel);
  }
  if (!out.empty()) return out;
  if (!known.empty())
    throw CliError(kExitUsage,
                   fmt::format("unknown kernel {}; known: {}", quoted_word(name), known));
  if (target != "simt" && target != "cuda")
    throw CliError(kExitUsage, fmt::format("unknown target {}; simt or cuda", quoted_word(target)));
  throw CliError(kExitUnsupported, fmt::format("plugin {} has no kernels for target {}",
                                               session.plugin->name, target));
}

DeclarationCost checked_cost(const assay_kernel &kernel, const Problem &p) {
  try {
    return cost_of(kernel, p);
  } catch (const oracle::OrderError &e) {
    throw CliError(kExitFinding, fmt::format("{}: {}", kernel.name, e.what()));
  }
}

} // namespace

int explain_declaration(Session &session, const FileOptions &o) {
  const std::string &wanted = o.selection.kernel, &target = o.selection.target;
  const bool quiet = session.options.quiet;
  std::optional<Case> given;
  if (!o.files.empty()) given = load_case(o.files[0]);
  const std::string name = wanted.empty() && given ? given->kernel : wanted;
  nlohmann::json rows = nlohmann::json::array();
  bool claims = true;
  for (const assay_kernel *kernel : declared_kernels(session, name, target)) {
    if (given && static_cast<Family>(kernel->family) != given->problem.family) continue;
    const Problem p = given ? given->problem : case_of(session, *kernel);
    const DeclarationCost cost = checked_cost(*kernel, p);
    claims &= cost.outputs > 0;
    if (!rows.empty() && !quiet) session.streams.out << "\n";
    if (!quiet) print(session.streams.out, *kernel, cost);
    rows.push_back(to_json(*kernel, p, cost));
  }
  if (rows.empty())
    throw CliError(kExitUsage, fmt::format("{}: a {} case does not fit {}", o.files[0],
                                           name_of(given->problem.family),
                                           name.empty() ? "these kernels" : "kernel " + name));
  const int exit = claims ? kExitPass : kExitHarness;
  return session.finish({{"declarations", rows}, {"exit", exit}}, exit);
}

} // namespace assay
