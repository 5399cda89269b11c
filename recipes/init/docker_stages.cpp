#include "recipes/init/docker_stages.hpp"

#include <algorithm>
#include <array>
#include <compare>

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

namespace {

/// Folders that are looked for in other stages: a stage may copy from many, and these in turn.
constexpr std::size_t kMostLooks = 200;

/// Sources and target of a COPY, variables as they are written.
std::vector<std::string> copied_words(const DockerInstruction& one) {
  if (auto words = exec_form(one.text)) return *std::move(words);
  bool complete = true;
  return docker_words(one.text, {}, complete);
}

std::vector<std::string> sources_copied(const DockerInstruction& copy) {
  std::vector<std::string> words = copied_words(copy);
  if (!words.empty()) words.pop_back();
  return words;
}

std::string_view without_slash(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

bool is_below(std::string_view path, std::string_view folder) {
  return path.size() > folder.size() && path.starts_with(folder) &&
         (folder.ends_with('/') || path[folder.size()] == '/');
}

/// Where `path` (`below`: or what lies below it) comes from, by the words of a COPY.
std::vector<std::string> sources_of(std::vector<std::string> words, const fs::path& workdir,
                                    std::string_view path, bool below) {
  if (words.size() < 2) return {};
  const std::string whole = (workdir / words.back()).lexically_normal().string();
  const std::string_view target = without_slash(whole);
  words.pop_back();
  const bool inside = is_below(path, target);
  if (path != target && !inside && !(below && is_below(target, path))) return {};
  for (std::string& source : words) {
    std::string origin(without_slash(source));
    if (inside) origin += path.substr(target == "/" ? 0 : target.size());
    source = std::move(origin);
  }
  return words;
}

}  // namespace

std::vector<DockerStages::Origin> DockerStages::origins(std::string_view path, std::size_t stage,
                                                        bool below) const {
  path = without_slash(path);
  std::vector<Origin> found;
  fs::path workdir = "/";
  for (const std::size_t i : chain_of(stage)) {
    for (const DockerInstruction& one : all[i].instructions) {
      if (one.keyword == "WORKDIR") workdir = (workdir / one.text).lexically_normal();
      const auto from = copied_from(one);
      if (!from || *from >= i) continue;
      for (std::string& origin : sources_of(copied_words(one), workdir, path, below)) {
        found.push_back({*from, std::move(origin)});
      }
    }
  }
  return found;
}

bool DockerStages::is_copied_on(std::string_view path, std::size_t stage) const {
  return !origins(path, stage, true).empty();
}

bool DockerStages::is_environment(std::string_view path, std::size_t stage) const {
  std::size_t looks = 0;
  return is_environment(path, stage, looks);
}

bool DockerStages::is_environment(std::string_view path, std::size_t stage,
                                  std::size_t& looks) const {
  if (is_environment_path(path)) return true;
  path = without_slash(path);
  if (path.size() < 2 || ++looks > kMostLooks) return false;
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
  const std::vector<Origin> before = origins(path, stage, false);
  return std::any_of(before.begin(), before.end(),
                     [&](const Origin& one) { return is_environment(one.path, one.stage, looks); });
}

bool DockerStages::holds_environment(std::string_view path, std::size_t stage) const {
  std::size_t looks = 0;
  return holds_environment(path, stage, looks);
}

bool DockerStages::holds_environment(std::string_view path, std::size_t stage,
                                     std::size_t& looks) const {
  path = without_slash(path);
  if (path.size() < 2 || ++looks > kMostLooks) return false;
  const std::string below = fmt::format("{}/", path);
  const std::string made = fmt::format("venv {}", below);
  for (const std::size_t i : chain_of(stage)) {
    for (const DockerInstruction& one : all[i].instructions) {
      if (one.keyword == "RUN" && says(one.text, made)) return true;
      const bool leads = one.text.starts_with("PATH") || one.text.starts_with("VIRTUAL_ENV");
      if (one.keyword == "ENV" && leads && says(one.text, below)) return true;
    }
  }
  const std::vector<Origin> before = origins(path, stage, true);
  return std::any_of(before.begin(), before.end(), [&](const Origin& one) {
    return is_environment(one.path, one.stage, looks) ||
           holds_environment(one.path, one.stage, looks);
  });
}

bool DockerStages::is_bare(std::size_t stage) const {
  const std::vector<std::size_t> chain = chain_of(stage);
  return std::none_of(chain.begin(), chain.end(), [&](std::size_t i) {
    const auto& instructions = all[i].instructions;
    return std::any_of(instructions.begin(), instructions.end(), [](const DockerInstruction& one) {
      return one.keyword == "RUN" || one.keyword == "COPY" || one.keyword == "ADD";
    });
  });
}

bool DockerStages::makes_environment(std::string_view path, std::size_t stage) const {
  constexpr std::array<std::string_view, 11> kMaking = {
      "venv",     "virtualenv", "uv sync",      "poetry install", "pdm install", "pdm sync",
      "--prefix", "--target",   "conda create", "mamba create",   "env create"};
  const std::string named(without_slash(path));
  const bool of_user = says(path, "/.local");
  const std::vector<std::size_t> chain = chain_of(stage);
  return std::any_of(chain.begin(), chain.end(), [&](std::size_t i) {
    const auto& instructions = all[i].instructions;
    return std::any_of(instructions.begin(), instructions.end(), [&](const auto& one) {
      if (one.keyword != "RUN") return false;
      if (says(one.text, named) || (of_user && says(one.text, "--user"))) return true;
      return std::any_of(kMaking.begin(), kMaking.end(),
                         [&](std::string_view word) { return says(one.text, word); });
    });
  });
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

/// What is copied, and the stages that it came through.
void DockerStages::follow(const Origin& copied, Used& used, std::size_t& looks) const {
  if (++looks > kMostLooks) return;
  const std::vector<std::size_t> whole = chain_of(copied.stage);
  used.all.insert(whole.begin(), whole.end());
  used.installing.insert(whole.begin(), whole.end());
  for (const Origin& one : origins(copied.path, copied.stage, true)) follow(one, used, looks);
}

void DockerStages::follow_all(const DockerInstruction& copy, std::size_t stage, Used& used) const {
  std::size_t looks = 0;
  for (const std::string& source : sources_copied(copy)) follow({stage, source}, used, looks);
}

bool DockerStages::copies_environment(const DockerInstruction& copy, std::size_t stage) const {
  if (is_environment_path(copy.text)) return true;
  const std::vector<std::string> sources = sources_copied(copy);
  return std::any_of(sources.begin(), sources.end(), [&](const std::string& source) {
    return is_environment(source, stage) || holds_environment(source, stage);
  });
}

DockerStages::Used DockerStages::used_by(const std::vector<std::size_t>& chain) const {
  Used used;
  struct Open {
    std::size_t stage;
    bool installed;  ///< what it installs is in the image
    auto operator<=>(const Open&) const = default;
  };
  std::vector<Open> open;
  for (const std::size_t i : chain) open.push_back({i, true});
  std::set<Open> seen(open.begin(), open.end());
  while (!open.empty()) {
    const Open copying = open.back();
    open.pop_back();
    for (const DockerInstruction& one : all[copying.stage].instructions) {
      const auto stage = copied_from(one);
      if (!stage) continue;
      const std::vector<std::size_t> whole = chain_of(*stage);
      used.all.insert(whole.begin(), whole.end());
      const bool installed = copying.installed && (copies_environment(one, *stage) ||
                                                   copies_workdir(one, whole) || exports(whole));
      if (installed) follow_all(one, *stage, used);
      for (const std::size_t i : whole) {
        if (seen.insert({i, installed}).second) open.push_back({i, installed});
      }
    }
  }
  return used;
}

}  // namespace mlenv
