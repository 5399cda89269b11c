#include "recipes/init/convert_folder.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "base/utf8.hpp"
#include "recipes/init/build_commands.hpp"
#include "recipes/init/listed_words.hpp"
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

constexpr std::string_view kReadme = "README.md";

std::string text_of(const fs::path& path) {
  return decoded_text(read_small_file_if_exists(path, size_limit::kConverted).value_or(""));
}

bool is_file_in(const fs::path& folder, std::string_view name) {
  std::error_code unknown;
  return fs::is_regular_file(folder / name, unknown);
}

bool is_binder(const fs::path& folder) {
  return folder.filename() == ".binder" || folder.filename() == "binder";
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

std::string member_text(const YamlNode& map, std::string_view key) {
  for (const YamlMember& member : map.members) {
    if (member.key.text == key) return member.value.text;
  }
  return {};
}

/// What a README.md says of a Space that Python runs; its `sdk` is empty for any other.
struct Space {
  std::string sdk{};
  std::string version{};
  std::string python{};
  std::string app{};
};
Space space_of(const std::string& readme) {
  const YamlDocument read = parse_yaml(front_matter(readme));
  if (!read.complete || read.root.kind != YamlKind::map) return {};
  const std::string sdk = member_text(read.root, "sdk");
  if (sdk != "gradio" && sdk != "streamlit") return {};
  const std::string app = member_text(read.root, "app_file");
  return {sdk, member_text(read.root, "sdk_version"), member_text(read.root, "python_version"),
          app.empty() ? "app.py" : app};
}

void space_beside(const fs::path& folder, Conversion& to) {
  if (!is_file_in(folder, kReadme) || leads_out(folder / kReadme, folder)) return;
  const Space space = space_of(read_source(folder / kReadme, to).text);
  if (space.sdk.empty()) return;
  const SourcePlace place{(folder / kReadme).lexically_normal().string(), 1};
  to.set_later_wins();
  to.python_package(
      place, space.version.empty() ? space.sdk : fmt::format("{}=={}", space.sdk, space.version));
  if (!space.python.empty()) to.python_version(place, space.python);
  const fs::path before = folder / "pre-requirements.txt";
  if (is_file_in(folder, "pre-requirements.txt")) {
    const ConversionSource source = read_source(before, to);
    to.requirements(before, source.shown, source.text);
  }
  if (!is_file_in(folder, space.app)) return;
  to.draft.command = space.sdk == "gradio"
                         ? std::vector<std::string>{"python", space.app}
                         : std::vector<std::string>{"streamlit", "run", space.app};
}

/// Binder's script that its build ends with, and what else it reads.
void binder_beside(const fs::path& folder, Conversion& to) {
  for (const char* name : {"start", "install.R", "Project.toml", "default.nix"}) {
    const std::string shown = (folder / name).lexically_normal().string();
    if (!is_file_in(folder, "postBuild") && !is_binder(folder)) break;
    if (is_file_in(folder, name))
      to.leave_out({shown, 0}, name, "Binder reads it, and no key says it");
  }
  if (!is_file_in(folder, "postBuild")) return;
  const ConversionSource source = read_source(folder / "postBuild", to);
  const FindFile find = [&](std::string_view name) -> std::optional<fs::path> {
    for (const fs::path& place : {is_binder(folder) ? folder.parent_path() : folder, folder}) {
      if (is_file_in(place, name)) return place / name;
    }
    return std::nullopt;
  };
  BuildCommands commands{{source.shown, 1}, source.text, {}, {}, {}, {}, {}};
  commands.all_here = true;
  commands.obstacle =
      "Binder's build ends with postBuild, in the project's folder: write it as a step of `run` if "
      "the image needs it";
  convert_commands(commands, find, to);
}

void debian_packages(const fs::path& path, Conversion& to) {
  int number = 0;
  const std::string text = read_source(path, to).text;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    for (const std::string& word : words_of_list(line)) {
      to.system_package({path.lexically_normal().string(), number}, word);
    }
  }
}

}  // namespace

bool is_space_readme(const std::string& text) { return !space_of(text).sdk.empty(); }

bool is_docker_space(const std::string& text) {
  const YamlDocument read = parse_yaml(front_matter(text));
  return read.complete && read.root.kind == YamlKind::map &&
         member_text(read.root, "sdk") == "docker";
}

void convert_space(const ConversionSource& readme, Conversion& to) {
  const fs::path list = readme.path.parent_path() / "requirements.txt";
  if (!is_file_in(list.parent_path(), "requirements.txt")) return;
  const ConversionSource source = read_source(list, to);
  to.requirements(list, source.shown, source.text);
}

namespace {

std::optional<fs::path> known_source_in(const fs::path& folder) {
  for (const std::string_view name : kSources) {
    fs::path path = folder / name;
    if (is_file_in(folder, name) && tells_of_packages(path)) return path;
  }
  return std::nullopt;
}

/// What Binder reads of a project (repo2docker's documentation, "Configuration Files"), beside a
/// Dockerfile.
constexpr std::array<std::string_view, 15> kOfBinder = {
    "environment.yml", "environment.yaml", "requirements.txt", "Pipfile",   "Pipfile.lock",
    "setup.py",        "setup.cfg",        "apt.txt",          "postBuild", "runtime.txt",
    "start",           "install.R",        "Project.toml",     "REQUIRE",   "default.nix"};

std::vector<std::string_view> files_of_binder(const fs::path& folder) {
  std::vector<std::string_view> found;
  for (const std::string_view name : kOfBinder) {
    if (is_file_in(folder, name)) found.push_back(name);
  }
  return found;
}

/// `.binder` or `binder`, where Binder's files are in it.
std::vector<fs::path> binder_folders(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const char* below : {".binder", "binder"}) {
    const fs::path path = folder / below;
    const bool some = !files_of_binder(path).empty() || is_file_in(path, "Dockerfile");
    if (some && !leads_out(path, folder)) found.push_back(path);
  }
  return found;
}

/// Of Binder, where nothing names packages of Python.
std::optional<fs::path> binder_source(const fs::path& folder) {
  for (const fs::path& below : binder_folders(folder)) {
    for (const char* name : {"apt.txt", "postBuild"}) {
      if (is_file_in(below, name)) return below / name;
    }
  }
  return std::nullopt;
}

/// With such a folder Binder reads none of its files outside of it. What it does not read anyway,
/// and a Dockerfile, says how the project itself is built, and goes first.
std::optional<fs::path> known_source(const fs::path& folder) {
  std::optional<fs::path> outside = known_source_in(folder);
  if (outside && !is_among(kOfBinder, outside->filename().string())) return outside;
  for (const fs::path& below : binder_folders(folder)) {
    if (auto found = known_source_in(below)) return found;
  }
  return binder_source(folder) ? std::nullopt : outside;
}

/// Where a project's folder and one of Binder's in it both describe an environment: what of the
/// other one does not count.
void tell_passed_over(const fs::path& source, Conversion& to) {
  const fs::path below = source.parent_path();
  const bool binder = is_binder(below);
  const fs::path folder = binder ? below.parent_path() : below;
  const auto is_itself = [](const std::string& one) { return one.ends_with("@ ."); };
  const bool itself = std::any_of(to.draft.packages.begin(), to.draft.packages.end(), is_itself);
  const auto tell = [&](const fs::path& in, const std::optional<fs::path>& instead,
                        std::string_view why) {
    std::vector<std::string> passed;
    for (const std::string_view name : files_of_binder(in)) {
      if ((itself && name.starts_with("setup.")) || to.has_read(in / name)) continue;
      passed.emplace_back(name);
    }
    if (passed.empty()) return;
    const std::string first = (in / passed.front()).lexically_normal().string();
    std::string all(why);
    if (instead) {
      all += fmt::format("; `mlenv init --from {}` converts that",
                         instead->lexically_normal().string());
    }
    to.leave_out({first, 0}, join(passed, ", "), all);
  };
  if (binder) {
    const std::string name = below.filename().string();
    tell(folder, known_source_in(folder),
         fmt::format("with a folder `{}` Binder reads it alone, and no file outside of it", name));
  }
  for (const fs::path& other : binder_folders(folder)) {
    if (other == below) continue;
    tell(other, other,
         fmt::format("Binder's environment, which is not that of `{}`",
                     source.lexically_relative(folder).string()));
  }
}

bool has_name_of_a_source(const std::string& name) {
  const bool conda = name.starts_with("env") && (name.ends_with(".yml") || name.ends_with(".yaml"));
  const bool list = name.starts_with("requirements") && name.ends_with(".txt");
  return conda || list || name.starts_with("Dockerfile.") || name.ends_with(".ipynb");
}

/// The only file whose name is the author's: environment-gpu.yml, requirements_gpu.txt.
std::optional<fs::path> only_source(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code unknown;
  for (const auto& entry : fs::directory_iterator(folder, unknown)) {
    if (has_name_of_a_source(entry.path().filename().string())) found.push_back(entry.path());
  }
  return found.size() == 1 ? std::optional(found.front()) : std::nullopt;
}

/// A list beside a project, as `pip install -e .` comes behind `conda env create`.
void project_beside(const fs::path& source, Conversion& to) {
  const std::string name = source.filename().string();
  const bool list = name.starts_with("environment.") || name.starts_with("conda.") ||
                    name.starts_with("requirements") || name == "Pipfile";
  const auto is_itself = [](const std::string& one) { return one.ends_with("@ ."); };
  if (!list || std::any_of(to.draft.packages.begin(), to.draft.packages.end(), is_itself)) return;
  const fs::path folder = source.parent_path();
  for (const char* project : {"pyproject.toml", "setup.py"}) {
    if (!is_file_in(folder, project) || !tells_of_packages(folder / project)) continue;
    to.leave_out(
        {(folder / project).lexically_normal().string(), 0}, project,
        "the project itself is not installed: `mlenv add 'NAME @ .'` does that, with what it "
        "requires");
    return;
  }
}

}  // namespace

std::optional<fs::path> richest_source(const fs::path& folder) {
  if (auto known = known_source(folder)) return known;
  if (is_file_in(folder, kReadme) && !leads_out(folder / kReadme, folder) &&
      is_space_readme(text_of(folder / kReadme))) {
    return folder / kReadme;
  }
  if (auto binder = binder_source(folder)) return binder;
  return only_source(folder);
}

void convert_beside(const fs::path& source, Conversion& to) {
  const fs::path folder = source.parent_path();
  const std::string name = source.filename().string();
  if (name == "Dockerfile" || name == "Containerfile") return tell_passed_over(source, to);
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
  space_beside(folder, to);
  binder_beside(folder, to);
  project_beside(source, to);
  tell_passed_over(source, to);
}

}  // namespace mlenv
