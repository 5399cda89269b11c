#include "recipes/init/docker_context.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "recipes/init/dockerfile.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// Sources of `COPY` and `ADD` that can be looked for: no other stage's, no address, no pattern.
std::vector<std::string> copied_sources(std::string_view text, const fs::path& shown) {
  std::vector<std::string> sources;
  for (const DockerInstruction& one : read_dockerfile(text, shown)) {
    if (one.keyword != "COPY" && one.keyword != "ADD") continue;
    const bool other = std::any_of(one.flags.begin(), one.flags.end(), [](const std::string& flag) {
      return flag.starts_with("--from");
    });
    if (other || !one.heredocs.empty()) continue;
    std::vector<std::string> words;
    if (const auto items = exec_form(one.text)) {
      words = *items;
    } else {
      for (const std::string_view word : split(one.text, ' ')) {
        if (!trim(word).empty()) words.emplace_back(trim(word));
      }
    }
    if (!words.empty()) words.pop_back();
    for (const std::string& word : words) {
      if (word.find_first_of("$*?[:'\"") != std::string::npos) continue;
      sources.push_back(fs::path(word).relative_path().lexically_normal().string());
    }
  }
  return sources;
}

bool is_whole(const std::string& source) {
  return source.empty() || source == "." || source == "./";
}

bool looks_like_project(const fs::path& folder) {
  constexpr std::array<std::string_view, 7> kFiles = {
      "pyproject.toml", "setup.py",        "setup.cfg", "requirements.txt",
      "uv.lock",        "environment.yml", "Pipfile"};
  std::error_code unknown;
  return std::any_of(kFiles.begin(), kFiles.end(),
                     [&](std::string_view name) { return fs::exists(folder / name, unknown); });
}

}  // namespace

fs::path guessed_docker_context(std::string_view text, const fs::path& own,
                                const fs::path& project) {
  std::error_code unknown;
  const fs::path here = fs::weakly_canonical(own.empty() ? "." : own, unknown);
  const fs::path top = fs::weakly_canonical(project.empty() ? "." : project, unknown);
  const fs::path below = here.lexically_relative(top);
  if (below.empty() || below == "." || *below.begin() == "..") return own;
  bool whole = false;
  bool own_has_some = false;
  for (const std::string& source : copied_sources(text, own)) {
    if (is_whole(source)) {
      whole = true;
    } else if (!source.starts_with("..")) {
      const bool in_own = fs::exists(here / source, unknown);
      if (!in_own && fs::exists(top / source, unknown)) return project.empty() ? "." : project;
      own_has_some = own_has_some || in_own;
    }
  }
  const bool elsewhere =
      whole && !own_has_some && !looks_like_project(here) && looks_like_project(top);
  return elsewhere ? (project.empty() ? fs::path(".") : project) : own;
}

}  // namespace mlenv
