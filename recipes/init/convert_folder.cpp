#include "recipes/init/convert_folder.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "base/utf8.hpp"
#include "recipes/project_path.hpp"
#include "recipes/setup_py.hpp"
#include "recipes/text.hpp"
#include "recipes/yaml.hpp"

namespace mlenv {
namespace {

/// The richest first.
constexpr std::array<std::string_view, 23> kSources = {"Dockerfile",
                                                       "Containerfile",
                                                       "environment.yml",
                                                       "environment.yaml",
                                                       "conda.yaml",
                                                       "conda.yml",
                                                       "python_env.yaml",
                                                       "cog.yaml",
                                                       "pixi.toml",
                                                       "uv.lock",
                                                       "poetry.lock",
                                                       "pdm.lock",
                                                       "Pipfile",
                                                       "pylock.toml",
                                                       "pyproject.toml",
                                                       "requirements.txt",
                                                       "requirements/requirements.txt",
                                                       "requirements/base.txt",
                                                       "setup.cfg",
                                                       "setup.py",
                                                       ".devcontainer/devcontainer.json",
                                                       ".devcontainer.json",
                                                       "devcontainer.json"};

std::string text_of(const fs::path& path) {
  return decoded_text(read_small_file_if_exists(path, size_limit::kConverted).value_or(""));
}

bool is_file_in(const fs::path& folder, std::string_view name) {
  std::error_code unknown;
  return fs::is_regular_file(folder / name, unknown);
}

/// A pyproject.toml or setup.cfg is often there for tools' settings alone.
bool tells_of_packages(const fs::path& path) {
  const std::string name = path.filename().string();
  if (name == "pyproject.toml") {
    const std::string text = text_of(path);
    return says(text, "[project]") || says(text, "[tool.poetry") || says(text, "[tool.pixi");
  }
  if (name == "setup.cfg") {
    const SetupFacts facts = read_setup_cfg(text_of(path));
    return facts.requires_ || facts.computed;
  }
  return true;
}

/// The lines between `---` at a README's beginning.
std::string front_matter(const std::string& text) {
  if (!text.starts_with("---")) return {};
  const std::size_t begin = text.find('\n');
  const std::size_t end = begin == std::string::npos ? begin : text.find("\n---", begin);
  return end == std::string::npos ? "" : text.substr(begin + 1, end - begin);
}

void convert_space(const fs::path& folder, Conversion& to) {
  if (!is_file_in(folder, "README.md") || leads_out(folder / "README.md", folder)) return;
  const YamlDocument readme = parse_yaml(front_matter(read_source(folder / "README.md", to).text));
  if (!readme.complete || readme.root.kind != YamlKind::map) return;
  const auto value = [&](std::string_view key) -> std::string {
    for (const YamlMember& member : readme.root.members) {
      if (member.key.text == key) return member.value.text;
    }
    return {};
  };
  const SourcePlace place{(folder / "README.md").lexically_normal().string(), 1};
  const std::string sdk = value("sdk");
  if (sdk != "gradio" && sdk != "streamlit") return;
  const std::string version = value("sdk_version");
  to.python_package(place, version.empty() ? sdk : fmt::format("{}=={}", sdk, version));
  const std::string python = value("python_version");
  if (!python.empty()) to.python_version(place, python);
  const std::string app = value("app_file").empty() ? "app.py" : value("app_file");
  if (!is_file_in(folder, app)) return;
  to.draft.command = sdk == "gradio" ? std::vector<std::string>{"python", app}
                                     : std::vector<std::string>{"streamlit", "run", app};
}

void debian_packages(const fs::path& path, Conversion& to) {
  int number = 0;
  const std::string text = read_source(path, to).text;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    std::string_view one = trim(line.substr(0, line.find('#')));
    while (!one.empty()) {
      const std::size_t end = std::min(one.find_first_of(" \t"), one.size());
      to.system_package({path.lexically_normal().string(), number}, one.substr(0, end));
      one = trim(one.substr(end));
    }
  }
}

}  // namespace

std::optional<fs::path> richest_source(const fs::path& folder) {
  for (const char* below : {"", ".binder", "binder"}) {
    if (leads_out(folder / below, folder)) continue;
    for (const std::string_view name : kSources) {
      fs::path path = folder / below / name;
      if (is_file_in(folder / below, name) && tells_of_packages(path)) return path;
    }
  }
  // Files of one kind whose names are the author's: environment-gpu.yml, requirements_gpu.txt.
  std::vector<fs::path> found;
  std::error_code unknown;
  for (const auto& entry : fs::directory_iterator(folder, unknown)) {
    const std::string name = entry.path().filename().string();
    const bool conda =
        name.starts_with("env") && (name.ends_with(".yml") || name.ends_with(".yaml"));
    const bool list = name.starts_with("requirements") && name.ends_with(".txt");
    if (conda || list || name.starts_with("Dockerfile.") || name.ends_with(".ipynb")) {
      found.push_back(entry.path());
    }
  }
  std::sort(found.begin(), found.end());
  if (found.size() == 1) return found.front();
  return std::nullopt;
}

void convert_beside(const fs::path& source, Conversion& to) {
  const fs::path folder = source.parent_path();
  const std::string name = source.filename().string();
  if (name == "Dockerfile" || name == "Containerfile") return;
  for (const char* list : {"packages.txt", "apt.txt"}) {
    if (is_file_in(folder, list)) debian_packages(folder / list, to);
  }
  for (const char* file : {"runtime.txt", ".python-version"}) {
    if (!to.draft.python.empty() || !is_file_in(folder, file)) continue;
    const std::string text = read_source(folder / file, to).text;
    std::string kept(trim(first_line(trim(text))));
    for (const std::string_view begin : {"python-", "python"}) {
      if (kept.starts_with(begin)) kept.erase(0, begin.size());
    }
    if (!kept.empty() && is_digit(kept.front())) {
      to.python_version({(folder / file).lexically_normal().string(), 1}, trim(kept));
    }
  }
  convert_space(folder, to);
}

}  // namespace mlenv
