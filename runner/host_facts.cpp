#include "runner/host_facts.hpp"

#include <chrono>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

std::string text_of(const fs::path& path) {
  try {
    return read_file_if_exists(path).value_or("");
  } catch (const Error& error) {
    log::debug("{}", error.what());
    return {};
  }
}

/// The value of `NAME=value`, quotes removed.
std::string os_release_value(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!line.starts_with(name) || line.substr(name.size(), 1) != "=") continue;
    std::string_view value = line.substr(name.size() + 1);
    if (value.size() > 1 && (value.front() == '"' || value.front() == '\'')) {
      value = value.substr(1, value.size() - 2);
    }
    return std::string(value);
  }
  return {};
}

/// The first word that is a driver's version: `580.65.06`, `470.57`.
std::string driver_version(std::string_view text) {
  while (!(text = trim(text)).empty()) {
    const std::string_view word = text.substr(0, text.find_first_of(" \t\r\n"));
    const std::size_t dot = word.find('.');
    const bool numbers = word.find_first_not_of("0123456789.") == std::string_view::npos;
    if (dot == 3 && numbers && !word.ends_with('.')) return std::string(word);
    text.remove_prefix(word.size());
  }
  return {};
}

std::string asked_of_nvidia_smi() {
  constexpr std::chrono::seconds kPatience{10};
  if (!find_program("nvidia-smi")) return {};
  try {
    Command command;
    command.argv = {"nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"};
    const Captured answer = run_captured(command, kPatience);
    return answer.exit.code == 0 ? driver_version(answer.out) : "";
  } catch (const Error& error) {
    log::debug("{}", error.what());
    return {};
  }
}

}  // namespace

HostFacts probe_host(const fs::path& root) {
  HostFacts facts;
  const std::string release = text_of(root / "etc/os-release");
  facts.base =
      base_of_suite(os_release_value(release, "ID"), os_release_value(release, "VERSION_CODENAME"));
  const std::string first_line = text_of(root / "proc/driver/nvidia/version");
  facts.nvidia_driver = driver_version(first_line.substr(0, first_line.find('\n')));
  if (facts.nvidia_driver.empty()) {
    facts.nvidia_driver = driver_version(text_of(root / "sys/module/nvidia/version"));
  }
  if (facts.nvidia_driver.empty() && root == "/") facts.nvidia_driver = asked_of_nvidia_smi();
  return facts;
}

}  // namespace mlenv
