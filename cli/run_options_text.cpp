#include <fmt/core.h>

#include "cli/run_options.hpp"

namespace mlenv::cli {
namespace {

class OptionWords {
 public:
  void add(std::string_view option, std::string_view value) {
    add(fmt::format("{} {}", option, value));
  }
  void add(std::string_view word) {
    if (!text_.empty()) text_ += ' ';
    text_ += word;
  }
  template <class Value>
  void add_if(std::string_view option, const std::optional<Value>& value) {
    if (value) add(option, fmt::format("{}", *value));
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string number(const std::optional<std::uint64_t>& value) {
  return value ? std::to_string(*value) : "unlimited";
}

void add_limits(const JobOptions& options, OptionWords& into) {
  into.add_if("--memory", options.limits.memory_bytes);
  into.add_if("--memory-swap", options.limits.memory_swap_bytes);
  if (options.limits.unlimited_swap) into.add("--memory-swap", "-1");
  into.add_if("--cpus", options.limits.cpus);
  into.add_if("--cpuset-cpus", options.limits.cpuset);
  into.add_if("--pids-limit", options.limits.pids);
  into.add_if("--shm-size", options.shm_bytes);
  into.add_if("--disk", options.disk_bytes);
  for (const Ulimit& one : options.ulimits) {
    into.add("--ulimit", fmt::format("{}={}:{}", one.name, number(one.soft), number(one.hard)));
  }
}

}  // namespace

std::string options_text(const JobOptions& options) {
  OptionWords words;
  add_limits(options, words);
  for (const MemoryFolder& one : options.tmpfs) words.add("--tmpfs", one.target);
  if (options.read_only) words.add("--read-only");
  words.add_if("--user", options.user);
  for (const std::string& group : options.groups) words.add("--group-add", group);
  words.add_if("--hostname", options.hostname);
  if (options.network != "host" && !options.network.empty())
    words.add("--network", options.network);
  for (const PublishedPort& port : options.ports) {
    words.add("--publish", fmt::format("{}:{}/{}", port.on_host(), port.container, port.protocol));
  }
  if (options.rdma) words.add("--rdma");
  for (const JobLabel& label : options.labels) {
    words.add("--label", fmt::format("{}={}", label.name, label.value));
  }
  return words.take();
}

}  // namespace mlenv::cli
