#include "runner/changes/compared.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <tuple>

#include <fmt/core.h>

#include "base/process.hpp"
#include "recipes/text.hpp"
#include "runner/check/case.hpp"
#include "runner/local/life.hpp"

namespace mlenv::changes {
namespace {

constexpr std::string_view kPackages = "packages of the image";

constexpr unsigned bit(Symptom symptom) { return 1U << static_cast<unsigned>(symptom); }

/// A run on one and the same machine is not this much longer for nothing.
constexpr double kLonger = 1.2;
constexpr double kTellingSeconds = 1;  // of difference, below which times tell nothing

bool was_given_gpus(const RunRecord& run) {
  return std::any_of(run.start.devices.begin(), run.start.devices.end(),
                     [](const std::string& device) { return device.starts_with("nvidia.com/"); });
}

bool has_gpus(const Facts* host) {
  if (host == nullptr) return false;
  const auto& gpus = host->gpus;
  const auto& on_bus = host->nvidia.pci_devices;
  return (gpus && !gpus->empty()) || (on_bus && !on_bus->empty());
}

/// The signal that ended it, also where a shell in between has made a status of it.
int signal_of_run(const RunEnd& end) {
  if (end.signal) return static_cast<int>(*end.signal);
  const bool is_signal = end.exit_code > kSignalBase && end.exit_code < kSignalBase + 65;
  return is_signal ? static_cast<int>(end.exit_code - kSignalBase) : 0;
}

Symptom symptom_of(const RunRecord& failed) {
  switch (signal_of_run(*failed.end)) {
    case SIGKILL:
      return Symptom::out_of_memory;
    case SIGBUS:
      return Symptom::bus_error;
    case SIGILL:
      return Symptom::illegal_instruction;
    default:
      return Symptom::fails;
  }
}

std::string failure_text(const RunRecord& run) {
  switch (symptom_of(run)) {
    case Symptom::out_of_memory:
      return "was killed (SIGKILL), as for want of memory";
    case Symptom::bus_error:
      return "was killed by a bus error (SIGBUS)";
    case Symptom::illegal_instruction:
      return "was killed for an instruction that the processor lacks (SIGILL)";
    default:
      break;
  }
  if (run.end->failure) return "could not be started";
  if (const int signal = signal_of_run(*run.end); signal != 0) {
    const std::string name = signal_name(signal);
    return fmt::format("was killed ({})", name.empty() ? fmt::format("SIG{}", signal) : name);
  }
  return fmt::format("failed with status {}", run.end->exit_code);
}

std::size_t order_of_rule(std::string_view rule) {
  return static_cast<std::size_t>(&rule_of(rule) - rules().data());
}

/// Lower is more likely. A symptom as special as SIGILL has causes of its own.
int tier_of(const Change& change, Symptom symptom) {
  const unsigned explains = rule_of(change.rule).explains;
  if (change.weight >= Weight::note || symptom == Symptom::none) return 2;
  if ((explains & bit(symptom)) != 0) return 0;
  const bool failed = symptom != Symptom::slower;
  return failed && (explains & bit(Symptom::fails)) != 0 ? 1 : 2;
}

/// Ends that few things bring.
bool is_special(Symptom symptom) {
  return symptom == Symptom::out_of_memory || symptom == Symptom::bus_error ||
         symptom == Symptom::illegal_instruction;
}

/// Whole parts that a record does not hold, in each of which the cause may lie.
constexpr std::array kComparedParts = std::to_array<std::string_view>({"host", "code", kPackages});

std::string longer_text(double ratio) {
  constexpr double kTwice = 2;
  return ratio < kTwice ? fmt::format("took {:.0f} % longer", (ratio - 1) * 100)
                        : fmt::format("took {:.1f} times as long", ratio);
}

constexpr std::size_t kListed = 6;

}  // namespace

std::string_view name_of(Weight weight) {
  switch (weight) {
    case Weight::breaks:
      return "breaks";
    case Weight::results:
      return "results";
    case Weight::speed:
      return "speed";
    case Weight::note:
      return "note";
    case Weight::incidental:
      break;
  }
  return "incidental";
}

const Change* Changes::likely() const {
  if (found.empty() || found.front().weight >= Weight::note) return nullptr;
  const Change& first = found.front();
  const int tier = tier_of(first, symptom);
  const bool part_unknown = std::any_of(open.begin(), open.end(), [](const NotCompared& one) {
    return std::find(kComparedParts.begin(), kComparedParts.end(), one.what) !=
           kComparedParts.end();
  });
  const bool plain = tier == 0 && is_special(symptom);
  if (part_unknown && !plain) return nullptr;
  if (found.size() == 1) return &first;
  const Change& second = found[1];
  if (tier_of(second, symptom) != tier) return &first;
  // Of several that explain it nobody can say which; among the others the worse stands out.
  const bool alone = second.weight >= Weight::note || (tier == 2 && second.weight > first.weight);
  return alone ? &first : nullptr;
}

bool Changes::differ() const {
  return std::any_of(found.begin(), found.end(),
                     [](const Change& one) { return one.weight != Weight::incidental; });
}

Compared::Compared(const Moment& from, const Moment& to, const Texts& code_files)
    : code_files_(&code_files) {
  from_host_ = from.host ? &*from.host : nullptr;
  to_host_ = to.host ? &*to.host : nullptr;
  const bool given = (from.run && was_given_gpus(*from.run)) || (to.run && was_given_gpus(*to.run));
  const bool alone = !from.run && !to.run;
  on_gpus_ = given || (alone && (has_gpus(from_host_) || has_gpus(to_host_)));
  if (from_host_ == nullptr || to_host_ == nullptr) {
    const std::string why = "the record does not hold the facts of its host";
    leave_open("host", from.host ? std::nullopt : std::optional(why),
               to.host ? std::nullopt : std::optional(why));
    from_host_ = to_host_ = nullptr;
  }
  if (!from.run || !to.run) return;
  from_run_ = &*from.run;
  to_run_ = &*to.run;
  read_ends();
  compare_installed(from, to);
}

void Compared::compare_installed(const Moment& from, const Moment& to) {
  const std::optional<RunEnvironment>& before = from_run_->environment;
  const std::optional<RunEnvironment>& after = to_run_->environment;
  if (from_run_->start.image.digest == to_run_->start.image.digest) {
    installed_ = &own_.emplace();
  } else if (before && after) {
    installed_ = &own_.emplace(diff_environments(environment_of(*before), environment_of(*after)));
  } else {
    leave_open(std::string(kPackages), before ? std::nullopt : std::optional(from.no_environment),
               after ? std::nullopt : std::optional(to.no_environment));
  }
}

void Compared::read_ends() {
  if (!from_run_->end || !to_run_->end) return;
  const auto is_done = [](const RunRecord& run) {
    return signal_of_run(*run.end) == 0 && run.end->exit_code == 0 && !run.end->failure;
  };
  const bool first_done = is_done(*from_run_);
  if (first_done != is_done(*to_run_)) {
    const RunRecord& failed = first_done ? *to_run_ : *from_run_;
    out_.symptom = symptom_of(failed);
    out_.symptom_text =
        fmt::format("the {} {}", first_done ? "second" : "first", failure_text(failed));
    return;
  }
  const double before = from_run_->end->seconds;
  const double after = to_run_->end->seconds;
  const auto [less, more] = std::minmax(before, after);
  if (!first_done || more - less < kTellingSeconds || more < less * kLonger) return;
  out_.symptom = Symptom::slower;
  out_.symptom_text =
      fmt::format("the {} {}", after > before ? "second" : "first", longer_text(more / less));
}

void Compared::find(std::string_view rule, Said said) {
  const Rule& known = rule_of(rule);
  Change change;
  change.rule = rule;
  change.weight = said.weight.value_or(known.weight);
  change.what = said.what.empty() ? std::string(known.what) : std::move(said.what);
  change.from = std::move(said.from);
  change.to = std::move(said.to);
  if (change.weight != Weight::incidental) {
    change.effect = said.effect.empty() ? std::string(known.effect) : std::move(said.effect);
    change.source = known.source;
    change.remedy = said.remedy.empty() ? std::string(known.remedy) : std::move(said.remedy);
  }
  out_.found.push_back(std::move(change));
}

void Compared::leave_open(std::string what, std::optional<std::string> from,
                          std::optional<std::string> to) {
  out_.open.push_back({std::move(what), std::move(from), std::move(to)});
}

const std::vector<std::string>* Compared::code_files() const {
  return code_files_ != nullptr && *code_files_ ? &**code_files_ : nullptr;
}

Changes Compared::take() && {
  const auto key = [&](const Change& one) {
    return std::tuple(tier_of(one, out_.symptom), one.weight, order_of_rule(one.rule));
  };
  for (Change& one : out_.found) one.explains = tier_of(one, out_.symptom) < 2;
  std::stable_sort(out_.found.begin(), out_.found.end(),
                   [&](const Change& a, const Change& b) { return key(a) < key(b); });
  out_.installed = std::move(own_);
  return std::move(out_);
}

std::string bytes_text(std::uint64_t bytes) { return size_text(bytes); }

std::string limit_text(const Limit& limit) {
  return limit.most ? bytes_text(*limit.most) : "no limit";
}

bool is_lower(const Limit& from, const Limit& to) {
  return to.most && (!from.most || *to.most < *from.most);
}

Said Listing::said() const {
  const auto side = [](const std::vector<std::string>& items) {
    return items.empty() ? std::nullopt : std::optional(listed(items, kListed));
  };
  return {side(from), side(to)};
}

}  // namespace mlenv::changes
