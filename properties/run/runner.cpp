// SPDX-License-Identifier: Apache-2.0
#include "properties/run/runner.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include "properties/case/classify.h"
#include "properties/case/hash.h"
#include "properties/case/problem_gen.h"
#include "properties/run/requirements.h"

namespace assay {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

uint64_t name_hash(const char *name) {
  uint64_t h = 0;
  for (; *name != '\0'; ++name)
    h = hash_mix(h ^ static_cast<unsigned char>(*name));
  return h;
}

int default_threads() {
  constexpr int kMost = 16;
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMost);
}

bool stopped(const RunnerOptions &options) {
  return options.stop != nullptr && options.stop->load(std::memory_order_relaxed);
}

/// One (kernel, property) in progress; owned by one thread.
class PropertyRunner {
public:
  /// `mutex` guards the callbacks of the options.
  PropertyRunner(PropertyRun &run, const RunnerOptions &options, std::mutex &mutex)
      : run_(run), options_(options), mutex_(mutex),
        sut_(options.isolate ? make_process_sut(make_sut(*run.kernel)) : make_sut(*run.kernel)),
        required_(required_classes(*run.property, *run.kernel)) {
    sut_->set_replays_scores(options.replay_scores);
  }

  void by_count() {
    uint64_t index = 0;
    // A property may discard; after 50 draws per wanted case it is hopeless.
    uint64_t last = static_cast<uint64_t>(options_.cases) * 50 + 50;
    for (; run_.cases < options_.cases && index < last && usable(); ++index)
      check(index, draw_case(*run_.property, *run_.kernel, options_, index));
    fill_missing(index);
  }

  void by_time(double seconds) {
    auto start = Clock::now();
    uint64_t index = 0;
    do {
      check(index, draw_case(*run_.property, *run_.kernel, options_, index));
      ++index;
    } while (since(start) < seconds && usable());
    fill_missing(index);
  }

private:
  /// Not worth going on: the harness failed, enough was found, or nothing is ever decided.
  bool usable() const {
    constexpr int kFindings = 20, kHopeless = 300;
    return run_.harness_error.empty() && run_.findings < kFindings && !stopped(options_) &&
           (run_.cases > 0 || run_.discarded < kHopeless);
  }

  /// Goes on drawing for the classes that have no case yet, and checks only those draws.
  void fill_missing(uint64_t index) {
    filling_ = true;
    drawn_cases_ = run_.cases;
    for (uint64_t last = index + 4000; index < last && usable(); ++index) {
      std::vector<std::string> missing = missing_classes();
      if (missing.empty()) break;
      Problem p = draw_case(*run_.property, *run_.kernel, options_, index);
      auto classes = classify(p);
      bool wanted = std::any_of(missing.begin(), missing.end(), [&](const std::string &name) {
        return std::find(classes.begin(), classes.end(), name) != classes.end();
      });
      if (wanted) check(index, p);
    }
    run_.missing = missing_classes();
  }

  /// The kernel refused cases of this class, and may.
  bool excused(const std::string &name) const {
    if (run_.unsupported_classes.count(name) == 0) return false;
    std::vector<std::string> optional = optional_classes();
    return (run_.property->about != 0 && run_.cases == 0) ||
           std::find(optional.begin(), optional.end(), name) != optional.end();
  }

  std::vector<std::string> missing_classes() const {
    std::vector<std::string> missing;
    for (const std::string &name : required_)
      if (run_.classes.count(name) == 0 && !excused(name)) missing.push_back(name);
    return missing;
  }

  void check(uint64_t index, const Problem &p) {
    bool threw = false;
    CheckResult r = checked(*run_.property, p, *sut_, &threw);
    if (threw) {
      run_.harness_error = r.message;
      return;
    }
    run_.ratio_t0 = std::max(run_.ratio_t0, r.ratio_t0);
    run_.ratio_t1 = std::max(run_.ratio_t1, r.ratio_t1);
    run_.ratio_t2 = std::max(run_.ratio_t2, r.ratio_t2);
    run_.ratio_lse = std::max(run_.ratio_lse, r.ratio_lse);
    run_.outputs += r.outputs;
    run_.no_claim += r.no_claim;
    run_.certified_rows += r.certified_rows;
    if (r.kind == CheckResult::Kind::kDiscard) {
      ++run_.discarded;
      if (!r.unsupported) return;
      ++run_.unsupported;
      for (const std::string &name : classify(p))
        ++run_.unsupported_classes[name];
      return;
    }
    if (r.kind == CheckResult::Kind::kUndecided) ++run_.undecided;
    ++run_.cases;
    for (const std::string &name : classify(p))
      ++run_.classes[name];
    if (!r.failed()) return;
    ++run_.findings;
    if (!run_.first.empty()) return;
    run_.first.push_back(shrunk(index, p));
    std::lock_guard lock(mutex_);
    if (options_.found) options_.found(run_);
  }

  Finding shrunk(uint64_t index, const Problem &p) {
    Finding f;
    f.index = index;
    f.cases = filling_ ? std::max(drawn_cases_, 1) : run_.cases;
    f.drawn = p;
    auto fails = [&](const Problem &candidate) {
      return checked(*run_.property, candidate, *sut_, nullptr).failed();
    };
    ShrinkBudget budget = options_.shrink;
    budget.stop = options_.stop;
    f.shrunk = shrink(p, fails, budget, &f.stats);
    f.result = checked(*run_.property, f.shrunk, *sut_, nullptr);
    return f;
  }

  PropertyRun &run_;
  const RunnerOptions &options_;
  std::mutex &mutex_;
  std::unique_ptr<Sut> sut_;
  std::vector<std::string> required_;
  bool filling_ = false;
  int drawn_cases_ = 0; // decided before fill_missing()
};

} // namespace

int RunSummary::cases() const {
  int n = 0;
  for (const PropertyRun &r : runs)
    n += r.cases;
  return n;
}
int RunSummary::findings() const {
  int n = 0;
  for (const PropertyRun &r : runs)
    n += r.findings;
  return n;
}
int RunSummary::undecided() const {
  int n = 0;
  for (const PropertyRun &r : runs)
    n += r.undecided;
  return n;
}
uint64_t RunSummary::outputs() const {
  uint64_t n = 0;
  for (const PropertyRun &r : runs)
    n += r.outputs;
  return n;
}
uint64_t RunSummary::certified_rows() const {
  uint64_t n = 0;
  for (const PropertyRun &r : runs)
    n += r.certified_rows;
  return n;
}
int RunSummary::unstarted() const {
  return static_cast<int>(
      std::count_if(runs.begin(), runs.end(), [](const PropertyRun &r) { return !r.started; }));
}
bool RunSummary::incomplete() const {
  for (const PropertyRun &r : runs)
    if (!r.started || r.hollow() || !r.missing.empty() || !r.harness_error.empty()) return true;
  return runs.empty();
}

CheckResult checked(const Property &property, const Problem &p, Sut &sut, bool *threw) {
  try {
    return property.check(p, sut);
  } catch (const std::exception &e) {
    if (threw != nullptr) *threw = true;
    return CheckResult::discard(std::string("exception: ") + e.what());
  }
}

Problem draw_case(const Property &property, const assay_kernel &kernel,
                  const RunnerOptions &options, uint64_t index) {
  uint64_t seed =
      hash_values(options.seed, name_hash(property.name), name_hash(kernel.name), index);
  auto family = static_cast<Family>(kernel.family);
  // One draw in 16 under the larger limits, cut to what the property multiplies.
  bool large = index % 16 == 15 && property.cost <= 2;
  Limits limits = large ? large_limits() : index % 2 == 0 ? fuzz_limits() : options.limits;
  if (large) limits.slots = 2048;
  return draw_problem(limits, family, seed);
}

RunSummary run_properties(const std::vector<const assay_kernel *> &kernels,
                          const std::vector<const Property *> &properties,
                          const RunnerOptions &options,
                          const std::function<void(const Progress &)> &progress) {
  auto start = Clock::now();
  RunSummary summary;
  summary.seed = options.seed;
  for (const assay_kernel *kernel : kernels)
    for (const Property *property : properties)
      if (applies(*property, *kernel)) {
        PropertyRun run;
        run.property = property;
        run.kernel = kernel;
        summary.runs.push_back(std::move(run));
      }
  int total = static_cast<int>(summary.runs.size());
  int workers = options.threads > 0 ? options.threads : default_threads();
  std::atomic<int> next{0};
  std::mutex mutex;
  Progress state{0, total, 0, 0};
  auto work = [&] {
    for (int i = next++; i < total && !stopped(options); i = next++) {
      PropertyRun &run = summary.runs[i];
      run.started = true;
      auto begin = Clock::now();
      PropertyRunner runner(run, options, mutex);
      if (options.budget > 0)
        runner.by_time(options.budget * workers / total);
      else
        runner.by_count();
      run.seconds = since(begin);
      std::lock_guard lock(mutex);
      ++state.done;
      state.cases += run.cases;
      state.findings += run.findings;
      if (progress) progress(state);
    }
  };
  std::vector<std::thread> threads;
  for (int t = 1; t < workers; ++t)
    threads.emplace_back(work);
  work();
  for (std::thread &t : threads)
    t.join();
  summary.seconds = since(start);
  return summary;
}

} // namespace assay
