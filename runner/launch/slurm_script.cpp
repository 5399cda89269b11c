#include "runner/launch/slurm_script.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"

namespace mlenv::job {
namespace {

bool is_plain(char c) {
  return is_alphanumeric(c) || std::string_view{"%+,-./:=@^_"}.find(c) != std::string_view::npos;
}

/// `%` begins a pattern there.
std::string escaped_file_name(const std::string& path) {
  std::string text;
  for (const char c : path) text += c == '%' ? std::string("%%") : std::string(1, c);
  return text;
}

/// Slurm's days-hours:minutes:seconds. The deadline is the job's, and ends it with a status of its
/// own: ranks have their grace then, and Slurm warns only later. It does so up to a minute earlier
/// than it is asked to (`--signal`, sbatch(1)), and the job's time begins a little after Slurm's.
std::string time_limit(const Job& job) {
  using std::chrono::seconds;
  constexpr seconds kEarly{60};
  constexpr seconds kToBegin{60};
  const auto own =
      std::chrono::ceil<seconds>(*job.deadline) + std::chrono::ceil<seconds>(job.grace);
  const std::int64_t all = (own + slurm_warning(job) + kEarly + kToBegin).count();
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 60 * kMinute;
  constexpr std::int64_t kDay = 24 * kHour;
  return fmt::format("{}-{:02}:{:02}:{:02}", all / kDay, all % kDay / kHour, all % kHour / kMinute,
                     all % kMinute);
}

}  // namespace

std::chrono::seconds slurm_warning(const Job& job) {
  using std::chrono::seconds;
  constexpr seconds kLeast{60};
  constexpr seconds kToClear{30};
  constexpr seconds kMost{65'535};  // that sbatch takes
  return std::clamp(std::chrono::ceil<seconds>(job.grace) + kToClear, kLeast, kMost);
}

/// sbatch cuts at blanks, takes double quotes, and knows no way to write one.
std::string slurm_directive(const std::string& word) {
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F || c == '"' || c == '\\') {
      throw usage_error("bad-job", "`{}` cannot stand in a batch script of Slurm's",
                        printable(word));
    }
  }
  const std::size_t equal = word.find('=');
  if (word.find_first_of(" '#") == std::string::npos) return "#SBATCH " + word + "\n";
  if (equal == std::string::npos) return "#SBATCH \"" + word + "\"\n";
  return "#SBATCH " + word.substr(0, equal + 1) + "\"" + word.substr(equal + 1) + "\"\n";
}

std::string slurm_name(std::string name) {
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return !is_alphanumeric(c) && c != '.' && c != '_' && c != '-'; }, '-');
  return name.empty() ? "mlenv" : name;
}

std::vector<std::string> slurm_resources(const Job& job, std::uint64_t tasks_per_node) {
  const NodeCount& nodes = job.nodes;
  std::vector<std::string> words;
  words.push_back(nodes.least == nodes.most
                      ? fmt::format("--nodes={}", nodes.most)
                      : fmt::format("--nodes={}-{}", nodes.least, nodes.most));
  words.push_back(fmt::format("--ntasks-per-node={}", tasks_per_node));
  const auto ranks = static_cast<double>(job.ranks_per_node) / static_cast<double>(tasks_per_node);
  const JobLimits& limits = job.options.limits;
  if (limits.cpus) {
    words.push_back(fmt::format("--cpus-per-task={}", std::ceil(*limits.cpus * ranks)));
  }
  if (limits.memory_bytes) {
    constexpr std::uint64_t kMega = std::uint64_t{1} << 20U;
    const std::uint64_t bytes = *limits.memory_bytes * job.ranks_per_node;
    words.push_back(fmt::format("--mem={}M", (bytes + kMega - 1) / kMega));
  }
  // For the node, not for each task: GPUs of one node that are given to tasks one by one do not see
  // their peers.
  if (job.gpus_per_node && *job.gpus_per_node > 0) {
    words.push_back(fmt::format("--gpus-per-node={}", *job.gpus_per_node));
  }
  // Its controller goes on with the nodes that are left.
  if (nodes.least < nodes.most) words.emplace_back("--no-kill");
  if (job.deadline) words.push_back("--time=" + time_limit(job));
  return words;
}

std::string shell_word(const std::string& word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string slurm_script(const Job& job, const SlurmScript& script) {
  std::string text = "#!/bin/sh\n";
  std::vector<std::string> words = {"--job-name=" + slurm_name(script.name)};
  // One agent a node; ranks are its children, and share what the node was given.
  for (std::string& word : slurm_resources(job, 1)) words.push_back(std::move(word));
  if (!script.array.empty()) words.push_back("--array=" + script.array);
  words.push_back("--output=" + escaped_file_name(script.output) + script.output_of_task);
  // A node that fails, or a preemption, puts the job back into the queue; what it prints then comes
  // after what it has printed.
  words.emplace_back("--requeue");
  words.emplace_back("--open-mode=append");
  words.push_back(fmt::format("--signal=B:TERM@{}", slurm_warning(job).count()));
  words.insert(words.end(), script.site.begin(), script.site.end());
  for (const std::string& word : words) text += slurm_directive(word);
  text += "\n# The controller of the job: it starts an agent on every node by srun.\nexec";
  for (const std::string& word : script.command) text += " " + shell_word(word);
  return text + "\n";
}

}  // namespace mlenv::job
