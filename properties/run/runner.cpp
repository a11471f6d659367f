// SPDX-License-Identifier: Apache-2.0
#include "properties/run/runner.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include "properties/case/classify.h"
#include "properties/relate/compared.h"
#include "properties/relate/origin.h"
#include "properties/relate/outcome.h"
#include "properties/run/draw.h"
#include "properties/run/needed_calls.h"
#include "properties/run/processors.h"
#include "properties/run/requirements.h"

namespace assay {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int default_threads() {
  constexpr int kMax = 16;
  return std::min(usable_processors(), kMax);
}

bool stopped(const RunnerOptions &options) {
  return options.stop != nullptr && options.stop->load(std::memory_order_relaxed);
}

std::unique_ptr<Sut> sut_of(const assay_kernel &kernel, const RunnerOptions &options) {
  if (options.make_sut) return options.make_sut(kernel);
  return options.isolate ? make_process_sut(kernel) : make_sut(kernel);
}

/// What the threads of a run share.
struct Shared {
  std::mutex mutex; ///< of the callbacks, and of what follows
  std::set<const assay_kernel *> hung;
};

/// One (kernel, property) in progress; owned by one thread.
class PropertyRunner {
public:
  PropertyRunner(PropertyRun &run, const RunnerOptions &options,
                 const std::vector<std::string> &out_of_reach, Shared &shared)
      : run_(run), options_(options), shared_(shared), sut_(sut_of(*run.kernel, options)),
        required_(required_classes(*run.property, *run.kernel)) {
    sut_->set_replays_scores(options.replay_scores);
    sut_->assume(options.assumed);
    run_.narrow = options.envelopes.count(run.kernel) > 0;
    // What no draw in the envelope shows is not required.
    for (const std::string &name : out_of_reach)
      if (std::erase(required_, name) > 0) run_.outside.push_back(name);
  }

  void by_count() {
    uint64_t index = 0;
    // A property may discard; after 50 draws per wanted case it is hopeless.
    const int wanted = options_.cases * run_.property->weight;
    const uint64_t last = static_cast<uint64_t>(wanted) * 50 + 50;
    for (; run_.cases < wanted && index < last && usable(); ++index)
      draw(index);
    if (options_.cases >= kWholeRun) serve();
    fill_missing(index);
  }

  void by_time(double seconds) {
    auto start = Clock::now();
    uint64_t index = 0;
    do {
      draw(index);
      ++index;
    } while (since(start) < seconds && usable());
    if (seconds >= kSecondsOfServing) serve();
    fill_missing(index);
  }

private:
  static constexpr int kWholeRun = 40;            ///< cases, as many as are usual
  static constexpr double kSecondsOfServing = 20; ///< which take a few
  static constexpr int kCasesOfClass = 2;         ///< of an important one, at least
  static constexpr int kOften = 8;                ///< refusals of a class, after which it may lack

  /// Not worth going on: the harness failed, enough was found, or nothing is ever decided.
  bool usable() const {
    constexpr int kFindings = 20, kHopeless = 300, kRefused = 40;
    const bool refused = run_.narrow && run_.unsupported >= kRefused;
    return run_.harness_error.empty() && run_.findings < kFindings && !hung_ &&
           !stopped(options_) && (run_.cases > 0 || (run_.discarded < kHopeless && !refused));
  }

  void draw(uint64_t index) {
    const Problem p = draw_case(*run_.property, *run_.kernel, options_, index);
    run_.asked.add(p);
    check(index, p);
  }

  /// Sizes that other draws do not have.
  void serve() {
    const int draws = serving_draws(*run_.property, *run_.kernel);
    int done = 0;
    for (; done < draws && usable(); ++done)
      draw(kFirstServingDraw + static_cast<uint64_t>(done));
    if (run_.property != find_property("within_budget") || done < draws || run_.cases == 0) return;
    const auto narrow = options_.envelopes.find(run_.kernel);
    run_.never_asked = never_asked(static_cast<Family>(run_.kernel->family), run_.asked,
                                   narrow == options_.envelopes.end() ? nullptr : &narrow->second);
  }

  /// Goes on drawing for the classes that have no case yet, and checks only those draws.
  void fill_missing(uint64_t index) {
    filling_ = true;
    drawn_cases_ = run_.cases;
    // What a property takes out of every case it is given, none of its cases will show.
    constexpr int kInVain = 100;
    size_t open = SIZE_MAX;
    int in_vain = 0;
    for (uint64_t last = index + 4000; index < last && in_vain < kInVain && usable(); ++index) {
      const std::vector<std::string> missing = missing_classes();
      if (missing.empty()) break;
      const Problem p = draw_case(*run_.property, *run_.kernel, options_, index);
      const auto classes = classify(p);
      const bool wanted = std::any_of(missing.begin(), missing.end(), [&](const std::string &name) {
        return std::find(classes.begin(), classes.end(), name) != classes.end();
      });
      if (!wanted) continue;
      check(index, p);
      const size_t left = wanting();
      in_vain = left < open ? 0 : in_vain + 1;
      open = std::min(open, left);
    }
    for (const std::string &name : missing_classes())
      (always_refused(name) ? run_.outside : run_.missing).push_back(name);
    for (const std::string &name : required_)
      if (run_.narrow && cases_of(name) == 0 && excused(name)) run_.outside.push_back(name);
  }

  /// The kernel refused cases of this class, and may.
  bool excused(const std::string &name) const {
    const auto refused = run_.unsupported_classes.find(name);
    if (run_.narrow && run_.cases == 0) return true;
    if (refused == run_.unsupported_classes.end()) return false;
    if (run_.narrow && refused->second >= kOften) return true;
    std::vector<std::string> optional = optional_classes();
    return (run_.property->about != 0 && run_.cases == 0) ||
           std::find(optional.begin(), optional.end(), name) != optional.end();
  }

  /// Where cases make many calls, a case passes although some of them were refused.
  bool always_refused(const std::string &name) const {
    const auto refused = only_refused_.find(name);
    return run_.narrow && cases_of(name) == 0 && refused != only_refused_.end() &&
           refused->second >= kOften;
  }

  std::vector<std::string> missing_classes() const {
    std::vector<std::string> missing;
    for (const std::string &name : required_)
      if (cases_of(name) < kCasesOfClass && !excused(name)) missing.push_back(name);
    return missing;
  }

  /// Cases that required classes still lack, over all of them.
  size_t wanting() const {
    size_t out = 0;
    for (const std::string &name : required_)
      out += static_cast<size_t>(std::max(0, kCasesOfClass - cases_of(name)));
    return out;
  }

  int cases_of(const std::string &name) const {
    const auto found = run_.classes.find(name);
    return found == run_.classes.end() ? 0 : found->second;
  }

  void check(uint64_t index, const Problem &p) {
    bool threw = false;
    sut_->take_classes();
    sut_->take_refused_classes();
    sut_->take_counters();
    take_compared();
    CheckResult r = checked(*run_.property, p, *sut_, &threw);
    history_.push_back(p);
    if (threw) {
      run_.harness_error = r.message;
      return;
    }
    const std::set<std::string> ran = sut_->take_classes();
    for (const std::string &name : sut_->take_refused_classes())
      if (!ran.contains(name)) ++only_refused_[name];
    for (const auto &[name, count] : sut_->take_counters())
      run_.counters[name] += count;
    // Without rows there is nothing to compare, and that nothing is written is what counts.
    if (r.passed() && take_compared() == 0 && p.batch > 0) {
      r = CheckResult::discard("no output was compared");
      ++run_.hollow_cases;
    }
    run_.add_case(r);
    if (r.kind == CheckResult::Kind::kDiscard) {
      ++run_.discarded;
      run_.discard_reason = r.message;
      if (!r.unsupported) return;
      if (options_.counted_refusal && options_.counted_refusal(*run_.kernel, r.refused))
        return count(classify(p));
      ++run_.unsupported;
      for (const std::string &name : classify(p))
        ++run_.unsupported_classes[name];
      return;
    }
    if (r.kind == CheckResult::Kind::kUndecided) ++run_.undecided;
    count(ran);
    run_.reached.add(p);
    if (!r.failed()) return;
    ++run_.findings;
    if (r.symptom.hung) note_hang(p, r);
    if (!run_.first.empty()) return;
    run_.first.push_back(shrunk(index, p, r));
    std::lock_guard lock(shared_.mutex);
    if (options_.found) options_.found(run_);
  }

  /// The kernel hangs, which costs as long again in every case that shows it: said at once.
  void note_hang(const Problem &p, const CheckResult &r) {
    hung_ = true;
    std::lock_guard lock(shared_.mutex);
    first_to_hang_ = shared_.hung.insert(run_.kernel).second;
    if (first_to_hang_ && options_.hung) options_.hung(run_, p, r);
  }

  template <class Names>
  void count(const Names &classes) {
    ++run_.cases;
    for (const std::string &name : classes)
      ++run_.classes[name];
  }

  Finding shrunk(uint64_t index, const Problem &p, const CheckResult &first) {
    Finding f;
    f.index = index;
    const int weight = run_.property->weight;
    f.cases = ((filling_ ? std::max(drawn_cases_, 1) : run_.cases) + weight - 1) / weight;
    f.drawn = p;
    if (hung_ && !first_to_hang_) { // another property makes it smaller: waiting is dear
      f.shrunk = p;
      f.result = first;
      return f;
    }
    shrink_and_replay(f, first);
    if (const std::string bits = other_bits(f); !bits.empty())
      f.result.message =
          "unstable, two runs of one call give other bits (" + bits + "): " + f.result.message;
    const Symptom &s = f.result.symptom;
    if (s.of_element() && !f.after_others)
      f.result.symptom.origin = origin_of(f.shrunk, s.row, s.head, s.dim, *sut_);
    return f;
  }

  void shrink_and_replay(Finding &f, const CheckResult &first) {
    shrink_into(f, false);
    // A replay is the first call of its process.
    const bool anew = sut_->start_anew();
    if (anew) f.result = once(f.shrunk);
    if (f.result.failed()) return;
    if (anew && fails_alone(f.drawn)) {
      f.stats = {};
      shrink_into(f, true);
      if (f.result.failed()) return;
    }
    f.after_others = anew;
    f.stats = {};
    if (anew && shrink_sequence(f)) return;
    // It fails now and then: what was drawn is what is known to.
    f.stats = {};
    f.before.clear();
    f.shrunk = f.drawn;
    f.result = first;
    f.result.message =
        (anew ? "only after other calls: " : "not in every run of the case: ") + first.message;
  }

  /// Finds which of the cases before it the failure needs, then makes them and the case simpler.
  bool shrink_sequence(Finding &f) {
    const ShrinkBudget budget = shrink_budget();
    const double end = budget.clock() + budget.seconds;
    const auto spent = [&] { return budget.clock() > end || stopped(options_); };
    if (!history_.empty()) history_.pop_back(); // the case itself
    const auto fails = [&](const CallsBefore &calls) { return run_anew(calls).failed(); };
    CallsBefore calls = needed_calls(history_, f.drawn, fails, spent);
    if (calls.before.empty()) return false;
    if (calls.before.size() == 1)
      shrink_pair(calls, fails, spent, f.stats);
    else
      calls.last = shrink(
          calls.last,
          [&](const Problem &p) {
            return fails({calls.before, p});
          },
          budget, &f.stats);
    f.result = run_anew(calls);
    if (!f.result.failed()) return false;
    f.shrunk = calls.last;
    f.before = calls.before;
    const std::string others = how_earlier_differs(f.before.back(), f.shrunk);
    f.result.message = (f.before.size() == 1 ? "only after a call" : "only after calls") +
                       (others.empty() ? " like it" : " with " + others) + ": " + f.result.message;
    return true;
  }

  /// Makes a call and the one before it equal but for what must differ, then both simpler.
  void shrink_pair(CallsBefore &calls, const std::function<bool(const CallsBefore &)> &fails,
                   const std::function<bool()> &spent, ShrinkStats &stats) {
    const Problem earlier = calls.before[0];
    const FieldNames names = needed_differences(earlier, calls.last, fails, spent);
    const auto behind = [&](const Problem &p) { return with_fields_of(p, earlier, names); };
    if (!behind(calls.last)) return;
    const auto pair_fails = [&](const Problem &p) {
      const auto before = behind(p);
      return before && fails({{*before}, p});
    };
    calls.last = shrink(calls.last, pair_fails, shrink_budget(), &stats);
    calls.before = {*behind(calls.last)};
  }

  CheckResult run_anew(const CallsBefore &calls) {
    sut_->start_anew();
    for (const Problem &p : calls.before)
      once(p);
    return once(calls.last);
  }

  /// How two runs of the call of a finding differ, where the kernel declares that they do not.
  std::string other_bits(const Finding &f) {
    if (run_.kernel->determinism == ASSAY_DETERMINISM_NONE || f.result.symptom.hung) return "";
    const CheckResult r = checked(
        [&] {
          const Outcome first = run_problem(f.shrunk, *sut_), second = run_problem(f.shrunk, *sut_);
          return first.ok() && second.ok() ? same_bits(first.after, second.after, "second run")
                                           : CheckResult::pass();
        },
        nullptr);
    return r.failed() ? r.message : "";
  }

  CheckResult once(const Problem &p) { return checked(*run_.property, p, *sut_, nullptr); }
  bool fails_alone(const Problem &p) {
    sut_->start_anew();
    return once(p).failed();
  }

  ShrinkBudget shrink_budget() {
    ShrinkBudget budget = options_.shrink;
    budget.stop = options_.stop;
    budget.clock = [this] { return processor_seconds() + sut_->seconds_elsewhere(); };
    return budget;
  }

  /// `alone`: every candidate is the first case of its process.
  void shrink_into(Finding &f, bool alone) {
    const ShrinkBudget budget = shrink_budget();
    const auto fails = [&](const Problem &p) { return alone ? fails_alone(p) : once(p).failed(); };
    f.shrunk = shrink(f.drawn, fails, budget, &f.stats);
    if (alone) sut_->start_anew();
    f.result = once(f.shrunk);
  }

  PropertyRun &run_;
  const RunnerOptions &options_;
  Shared &shared_;
  std::unique_ptr<Sut> sut_;
  std::vector<std::string> required_;
  std::vector<Problem> history_; ///< cases that were checked, in order
  bool hung_ = false;            // one case is enough
  bool first_to_hang_ = false;
  bool filling_ = false;
  std::map<std::string, int> only_refused_; ///< cases by a class of whose calls none ran
  int drawn_cases_ = 0;                     // decided before fill_missing()
};

} // namespace

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
  std::map<const assay_kernel *, std::vector<std::string>> out_of_reach;
  for (const assay_kernel *kernel : kernels)
    out_of_reach[kernel] = unseen_classes(*kernel, options);
  int total = static_cast<int>(summary.runs.size()), weights = 0;
  std::vector<PropertyRun *> queue; // the heaviest first, for they take the longest
  for (PropertyRun &run : summary.runs) {
    weights += run.property->weight;
    queue.push_back(&run);
  }
  std::stable_sort(queue.begin(), queue.end(), [](const PropertyRun *a, const PropertyRun *b) {
    return a->property->weight > b->property->weight;
  });
  int workers = options.threads > 0 ? options.threads : default_threads();
  if (options.isolate && processes_need_one_thread()) workers = 1;
  std::atomic<int> next{0};
  Shared shared;
  Progress state{0, total, 0, 0};
  auto work = [&] {
    if (options.on_thread) options.on_thread();
    for (int i = next++; i < total && !stopped(options); i = next++) {
      PropertyRun &run = *queue[i];
      run.started = true;
      auto begin = Clock::now();
      PropertyRunner runner(run, options, out_of_reach.at(run.kernel), shared);
      if (options.budget > 0)
        runner.by_time(std::min(options.budget * workers * run.property->weight / weights,
                                options.budget / 2));
      else
        runner.by_count();
      run.seconds = since(begin);
      std::lock_guard lock(shared.mutex);
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
