// What a run was given beside its command: limits, network, user (JobOptions).
#include <functional>

#include <fmt/core.h>

#include "recipes/text.hpp"
#include "runner/changes/rules.hpp"

namespace mlenv::changes {
namespace {

std::string option_text(const std::optional<std::uint64_t>& bytes) {
  return bytes ? bytes_text(*bytes) : "none";
}
std::string option_text(const std::string& word) { return word; }
std::string option_text(const std::optional<std::string>& word) { return word.value_or("none"); }
std::string option_text(bool is_so) { return is_so ? "yes" : "no"; }

template <class Value>
void compare(Compared& here, std::string_view rule, std::string_view option, const Value& from,
             const Value& to) {
  if (from == to) return;
  here.find(rule, {.from = fmt::format("{} {}", option, option_text(from)),
                   .to = fmt::format("{} {}", option, option_text(to))});
}

std::string count_text(const std::optional<std::uint64_t>& count) {
  return count ? std::to_string(*count) : "none";
}

using Most = std::optional<std::uint64_t>;

/// Less of it breaks what worked, more is worth knowing.
void compare_most(Compared& here, std::string_view rule, const Most& from, const Most& to,
                  const std::function<std::string(const Most&)>& shown) {
  if (from == to) return;
  const bool is_less = to && (!from || *to < *from);
  here.find(rule, {.from = shown(from),
                   .to = shown(to),
                   .weight = is_less ? std::nullopt : std::optional(Weight::note)});
}

/// `--memory 16 GB`
std::function<std::string(const Most&)> as_size(std::string_view option) {
  return [option](const Most& bytes) { return fmt::format("{} {}", option, option_text(bytes)); };
}

std::string processors_text(const JobLimits& limits) {
  std::string text = limits.cpus ? fmt::format("--cpus {:g}", *limits.cpus) : "";
  if (limits.cpuset) {
    text += fmt::format("{}--cpuset-cpus {}", text.empty() ? "" : " ", *limits.cpuset);
  }
  return text.empty() ? "all" : text;
}

std::string ulimits_text(const std::vector<Ulimit>& all) {
  std::vector<std::string> words;
  for (const Ulimit& one : all) {
    words.push_back(fmt::format("{}={}:{}", one.name, one.soft ? count_text(one.soft) : "unlimited",
                                one.hard ? count_text(one.hard) : "unlimited"));
  }
  return words.empty() ? "none" : listed(words, words.size());
}

/// Of those that matter to few programs.
std::string others_text(const JobOptions& options) {
  std::vector<std::string> words;
  for (const MemoryFolder& one : options.tmpfs) words.push_back("--tmpfs " + one.target);
  for (const PublishedPort& one : options.ports) {
    words.push_back(fmt::format("--publish {}:{}", one.on_host(), one.container));
  }
  for (const std::string& one : options.groups) words.push_back("--group-add " + one);
  if (options.limits.memory_swap_bytes) {
    words.push_back("--memory-swap " + bytes_text(*options.limits.memory_swap_bytes));
  }
  if (options.limits.unlimited_swap) words.emplace_back("--memory-swap -1");
  if (options.hostname) words.push_back("--hostname " + *options.hostname);
  return words.empty() ? "none" : listed(words, words.size());
}

using Layer = std::optional<RecordedLayer>;

/// What the run found in the image's place, or over it.
std::string start_text(const Layer& layer) {
  if (!layer || !layer->from) return "the image alone";
  const std::uint64_t writers = layer->generation;
  return fmt::format("what run {} kept, written by {} run{}", *layer->from, writers,
                     writers == 1 ? "" : "s");
}

/// Runs of one layer are told apart by how many wrote to it before, not by whose name it went by.
bool same_start(const Layer& from, const Layer& to) {
  const bool from_kept = from && from->from;
  const bool to_kept = to && to->from;
  if (!from_kept || !to_kept) return from_kept == to_kept;
  return from->id == to->id && from->generation == to->generation;
}

}  // namespace

void run_options(Compared& here) {
  if (here.from_run() == nullptr) return;
  const JobOptions& from = here.from_run()->start.options;
  const JobOptions& to = here.to_run()->start.options;
  compare_most(here, "run-memory", from.limits.memory_bytes, to.limits.memory_bytes,
               as_size("--memory"));
  compare_most(here, "run-shared-memory", from.shm_bytes, to.shm_bytes, as_size("--shm-size"));
  compare_most(here, "run-processes", from.limits.pids, to.limits.pids,
               [](const Most& most) { return "--pids-limit " + count_text(most); });
  if (from.ulimits != to.ulimits) {
    here.find("run-ulimits", {ulimits_text(from.ulimits), ulimits_text(to.ulimits)});
  }
  const std::string cpus = processors_text(from.limits);
  if (cpus != processors_text(to.limits)) {
    here.find("run-processors", {cpus, processors_text(to.limits)});
  }
  compare(here, "run-network", "--network", from.network, to.network);
  compare(here, "run-user", "--user", from.user, to.user);
  compare(here, "run-read-only", "--read-only:", from.read_only, to.read_only);
  compare(here, "run-rdma", "--rdma:", from.rdma, to.rdma);
  const Layer& from_layer = here.from_run()->start.layer;
  const Layer& to_layer = here.to_run()->start.layer;
  if (!same_start(from_layer, to_layer)) {
    here.find("kept-files", {start_text(from_layer), start_text(to_layer)});
  }
  if (others_text(from) != others_text(to)) {
    here.find("run-options", {others_text(from), others_text(to)});
  }
}

}  // namespace mlenv::changes
