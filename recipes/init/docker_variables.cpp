#include "recipes/init/docker_variables.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "recipes/init/docker_words.hpp"
#include "recipes/init/host_choice.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::array<std::string_view, 3> kDefaultIndexVariables = {"PIP_INDEX_URL", "UV_INDEX_URL",
                                                                    "UV_DEFAULT_INDEX"};
constexpr std::array<std::string_view, 3> kExtraIndexVariables = {"PIP_EXTRA_INDEX_URL",
                                                                  "UV_EXTRA_INDEX_URL", "UV_INDEX"};

/// `PYTHONPATH=/app:$PYTHONPATH`, where nothing gave it a value before: the empty one, as in
/// Docker. No empty part stays, which would mean the folder that a program starts in.
void drop_itself(DockerVariable& variable) {
  if (variable.complete || variable.name == "PATH") return;
  std::string value = variable.value;
  const std::string& name = variable.name;
  bool some = false;
  for (const std::string& itself :
       {fmt::format("${{{0}:+:${{{0}}}}}", name), fmt::format("${{{0}:+:${0}}}", name),
        fmt::format("${{{}}}", name), fmt::format("${}", name)}) {
    for (std::size_t at = value.find(itself); at != std::string::npos; at = value.find(itself)) {
      const std::size_t end = at + itself.size();
      const bool longer = itself.back() != '}' && end < value.size() &&
                          (is_alphanumeric(value[end]) || value[end] == '_');
      if (longer) break;
      value.erase(at, itself.size());
      some = true;
    }
  }
  std::vector<std::string> parts;
  for (const std::string_view part : split(value, ':')) {
    if (!part.empty()) parts.emplace_back(part);
  }
  bool complete = true;
  expand_variables(value, {}, complete);
  if (!some || !complete || parts.empty()) return;
  variable.value = join(parts, ":");
  variable.complete = variable.continues = true;
}

/// Whether nothing is lost with a PATH: the system's folders, those of an environment that is not
/// made here, and what was there before.
bool is_usual_path(std::string_view value) {
  constexpr std::array<std::string_view, 9> kFolders = {
      "",         "$PATH",     "${PATH}",        "/bin",           "/sbin",
      "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"};
  constexpr std::array<std::string_view, 2> kOfGpus = {"/usr/local/cuda", "/usr/local/nvidia"};
  const std::vector<std::string_view> parts = split(value, ':');
  return std::all_of(parts.begin(), parts.end(), [&](std::string_view part) {
    if (is_among(kFolders, part)) return true;
    for (const std::string_view one : kOfGpus) {
      if (part.starts_with(one)) return true;
    }
    return !part.starts_with("/usr/local/") && is_environment_path(part);
  });
}

}  // namespace

std::vector<DockerVariable> docker_env(const DockerInstruction& one, const DockerVariables& known) {
  bool complete = true;
  const std::string_view text = one.text;
  const std::size_t blank = text.find_first_of(" \t");
  const std::string_view first = text.substr(0, blank);
  if (first.find('=') == std::string_view::npos) {  // the old form
    if (blank == std::string_view::npos) return {{"", "", true, "it has no value"}};
    std::string value = docker_value(trim(text.substr(blank)), known, complete);
    DockerVariable variable{std::string(first), std::move(value), complete};
    drop_itself(variable);
    return {variable};
  }
  std::vector<DockerVariable> all;
  for (const std::string& word : docker_words(text, known, complete)) {
    const std::size_t equal = word.find('=');
    if (equal == std::string::npos) {
      all.push_back({"", "", true, fmt::format("`{}` has no value", word)});
      continue;
    }
    bool whole = true;  // of this variable alone
    expand_variables(word, {}, whole);
    all.push_back({word.substr(0, equal), word.substr(equal + 1), whole});
  }
  for (DockerVariable& each : all) {
    each.complete = each.complete || complete;
    drop_itself(each);
  }
  return all;
}

std::string_view platform_argument(std::string_view name) {
  for (const std::string_view side : {"TARGET", "BUILD"}) {
    if (!name.starts_with(side)) continue;
    const std::string_view what = name.substr(side.size());
    if (what == "PLATFORM") return "linux/amd64";
    if (what == "ARCH") return "amd64";
    if (what == "OS") return "linux";
  }
  return {};
}

bool convert_variable(const SourcePlace& place, const DockerVariable& variable, Conversion& to) {
  const auto& [name, value, complete, mistake, continues] = variable;
  const std::string shown = fmt::format("{}={}", name, value);
  if (name == "PATH") {
    if (!is_usual_path(value)) {
      to.leave_out(place, shown, "the image has its own PATH, with Python's programs first");
    }
    return false;
  }
  const bool known_base = to.draft.base.empty() || is_package_base(to.draft.base);
  if (!complete || (continues && !known_base)) {
    to.leave_out(place, shown,
                 complete ? "it adds to what the base image says: write all of it in `env`"
                          : kUnknownVariable);
    return false;
  }
  if (is_among(kDefaultIndexVariables, name)) {
    to.python_index(place, value, true);
  } else if (is_among(kExtraIndexVariables, name)) {
    for (const std::string_view url : split(value, ' ')) {
      if (!url.empty()) to.python_index(place, url, false);
    }
  } else if (is_manager_variable(name)) {
    to.leave_out_with_others(place, shown,
                             "settings of package managers, which the image does not need");
  } else {
    to.env(place, name, value);
  }
  return true;
}

}  // namespace mlenv
