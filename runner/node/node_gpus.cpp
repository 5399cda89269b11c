#include "runner/node/node_gpus.hpp"

#include <algorithm>
#include <charconv>

#include "base/error.hpp"
#include "base/text.hpp"
#include "runner/cdi/host_registry.hpp"
#include "runner/cdi/registry.hpp"
#include "runner/local/machine.hpp"

namespace mlenv::job {
namespace {

/// Nothing: no batch system has given some.
std::optional<std::string> given(const std::map<std::string, std::string>& variables) {
  for (const char* name : {"SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "CUDA_VISIBLE_DEVICES"}) {
    const auto found = variables.find(name);
    if (found != variables.end()) return found->second;
  }
  return std::nullopt;
}

std::optional<unsigned> gpu_index(std::string_view text) {
  unsigned value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

/// `0,2`, `0-3`, UUIDs: a device for each. Those after one that is none, as -1, count for nothing,
/// as CUDA has it (CUDA C++ Programming Guide, "CUDA Environment Variables").
std::vector<std::string> devices_in(const std::string& list) {
  constexpr unsigned kMost = 1024;
  std::vector<std::string> found;
  for (const std::string_view part : split(list, ',')) {
    const std::string word{trim(part)};
    if (word.empty()) continue;
    if (word.front() == '-') break;
    const std::size_t dash = word.find('-');
    const auto first = gpu_index(std::string_view(word).substr(0, dash));
    const auto last = dash == std::string::npos
                          ? std::nullopt
                          : gpu_index(std::string_view(word).substr(dash + 1));
    if (!first || !last) {
      found.push_back(word);
      continue;
    }
    for (unsigned one = *first; one <= std::min(*last, kMost); ++one) {
      found.push_back(std::to_string(one));
    }
  }
  return found;
}

}  // namespace

GpuChoice asked_gpus(std::string_view word) {
  if (word.empty()) return {GpuChoice::Kind::none};
  return word == kGpusIfAny ? GpuChoice{GpuChoice::Kind::all} : parse_gpus(word);
}

GpuChoice node_choice(std::string_view word, const std::map<std::string, std::string>& variables) {
  const bool if_any = word == kGpusIfAny;
  GpuChoice asked = asked_gpus(word);
  const std::optional<std::string> list = given(variables);
  if (!list || (asked.kind != GpuChoice::Kind::all && asked.kind != GpuChoice::Kind::count)) {
    return asked;
  }
  std::vector<std::string> devices = devices_in(*list);
  const std::size_t wanted = asked.kind == GpuChoice::Kind::count ? asked.count : devices.size();
  if (wanted > devices.size() || (devices.empty() && !if_any)) {
    throw refusal("no-device", "the batch system has given this node {} GPUs, and {} are asked for",
                  devices.size(), wanted == 0 ? "some" : std::to_string(wanted))
        .hint("ask it for as many as the job wants");
  }
  if (devices.empty()) return {GpuChoice::Kind::none};
  devices.resize(wanted);
  std::string text = "device=";
  for (const std::string& one : devices) text += (text.back() == '=' ? "" : ",") + one;
  return parse_gpus(text);
}

std::optional<std::uint64_t> given_gpus(const std::map<std::string, std::string>& variables) {
  const std::optional<std::string> list = given(variables);
  if (!list) return std::nullopt;
  return devices_in(*list).size();
}

NodeGpus node_gpus(std::string_view word) {
  const Variables variables = caller_variables();
  const GpuChoice choice = node_choice(word, {variables.begin(), variables.end()});
  if (choice.kind == GpuChoice::Kind::none || choice.kind == GpuChoice::Kind::automatic) return {};
  if (word == kGpusIfAny && !has_nvidia_driver()) return {};
  CdiRegistry registry{cdi_folders()};
  const auto cache = variables.find("XDG_CACHE_HOME");
  const auto home = variables.find("HOME");
  const fs::path folder = cache != variables.end()  ? fs::path(cache->second)
                          : home != variables.end() ? fs::path(home->second) / ".cache"
                                                    : temporary_root();
  add_nvidia(registry, folder / "mlenv");
  NodeGpus gpus;
  gpus.names = chosen_gpus(choice, registry);
  gpus.edits = registry.edits(gpus.names);
  return gpus;
}

}  // namespace mlenv::job
