#include "recipes/init/docker_stages.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "recipes/init/docker_words.hpp"
#include "recipes/text.hpp"

namespace mlenv {

std::vector<std::size_t> DockerStages::chain_of(std::size_t last) const {
  std::vector<std::size_t> chain;
  for (std::size_t at = last;;) {
    chain.push_back(at);
    const std::string image = to_lower(all[at].image);
    std::size_t before = at;
    for (std::size_t i = 0; i < at; ++i) {
      if (!all[i].name.empty() && all[i].name == image) before = i;
    }
    if (before == at) break;
    at = before;
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

std::optional<std::size_t> DockerStages::copied_from(const DockerInstruction& one) const {
  for (const std::string& flag : one.flags) {
    constexpr std::string_view kFrom = "--from=";
    if (!flag.starts_with(kFrom)) continue;
    const std::string name = to_lower(flag.substr(kFrom.size()));
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].name == name || std::to_string(i) == name) return i;
    }
  }
  return std::nullopt;
}

/// `COPY --from=build /app /app`, where the stage works in /app: `.venv` may be in it.
bool DockerStages::copies_workdir(const DockerInstruction& copy,
                                  const std::vector<std::size_t>& whole) const {
  std::string workdir;
  for (const std::size_t i : whole) {
    for (const DockerInstruction& one : all[i].instructions) {
      if (one.keyword == "WORKDIR") workdir = (fs::path(workdir) / one.text).lexically_normal();
    }
  }
  const std::string source = copy.text.substr(0, copy.text.find_first_of(" \t"));
  return !workdir.empty() && source.starts_with('/') &&
         (workdir + '/').starts_with(source.ends_with('/') ? source : source + '/');
}

bool DockerStages::is_environment(std::string_view path, std::size_t stage) const {
  if (is_environment_path(path)) return true;
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  if (path.size() < 2) return false;
  const std::string made = fmt::format("venv {}", path);
  const std::string led = fmt::format("{}/bin", path);
  for (const std::size_t i : chain_of(stage)) {
    for (const DockerInstruction& one : all[i].instructions) {
      if (one.keyword == "RUN" && (one.text.ends_with(made) || says(one.text, made + ' '))) {
        return true;
      }
      if (one.keyword == "ENV" && one.text.starts_with("PATH") && says(one.text, led)) return true;
    }
  }
  return false;
}

bool DockerStages::holds_environment(std::string_view path, std::size_t stage) const {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  if (path.size() < 2) return false;
  const std::string below = fmt::format("{}/", path);
  const std::string made = fmt::format("venv {}", below);
  for (const std::size_t i : chain_of(stage)) {
    for (const DockerInstruction& one : all[i].instructions) {
      if (one.keyword == "RUN" && says(one.text, made)) return true;
      const bool leads = one.text.starts_with("PATH") || one.text.starts_with("VIRTUAL_ENV");
      if (one.keyword == "ENV" && leads && says(one.text, below)) return true;
    }
  }
  return false;
}

/// `poetry export -o requirements.txt`: a list of what the project's lock holds.
bool DockerStages::exports(const std::vector<std::size_t>& whole) const {
  return std::any_of(whole.begin(), whole.end(), [&](std::size_t i) {
    const auto& instructions = all[i].instructions;
    return std::any_of(instructions.begin(), instructions.end(), [](const DockerInstruction& one) {
      return one.keyword == "RUN" &&
             (says(one.text, " export ") || says(one.text, "pipenv requirements"));
    });
  });
}

DockerStages::Used DockerStages::used_by(const std::vector<std::size_t>& chain) const {
  Used used;
  for (const std::size_t i : chain) {
    for (const DockerInstruction& one : all[i].instructions) {
      const auto stage = copied_from(one);
      if (!stage) continue;
      const std::vector<std::size_t> whole = chain_of(*stage);
      used.all.insert(whole.begin(), whole.end());
      const std::string_view source =
          std::string_view(one.text).substr(0, one.text.find_first_of(" \t"));
      if (is_environment_path(one.text) || is_environment(source, *stage) ||
          holds_environment(source, *stage) || copies_workdir(one, whole) || exports(whole)) {
        used.installing.insert(whole.begin(), whole.end());
      }
    }
  }
  return used;
}

}  // namespace mlenv
