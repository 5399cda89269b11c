// A virtual environment's folder (PEP 405), or one of conda's: what is installed in it, by the
// records that installers leave (PEP 376, PEP 610, conda-meta).
#include <algorithm>
#include <array>
#include <map>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "base/tree_walk.hpp"
#include "recipes/init/conda_packages.hpp"
#include "recipes/init/convert_folder.hpp"
#include "recipes/init/json_source.hpp"
#include "recipes/project_path.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> all;
  std::error_code unknown;
  for (const auto& entry : fs::directory_iterator(folder, unknown)) all.push_back(entry.path());
  std::sort(all.begin(), all.end());
  return all;
}

/// `lib/python3.11/site-packages`, and what Debian's Python calls so; links lead to others of them.
/// `lib/python3/site-packages` is that of mlenv's images, `lib/python3/dist-packages` Debian's own.
std::vector<fs::path> package_folders(const fs::path& lib) {
  std::vector<fs::path> all;
  std::error_code unknown;
  for (const fs::path& one : sorted_entries(lib)) {
    const std::string name = one.filename().string();
    const bool other = fs::is_symlink(one, unknown) && !leads_out(one, lib);
    if (!name.starts_with("python3") || other) continue;
    for (const char* kind : {"site-packages", "dist-packages"}) {
      if (name == "python3" && kind == std::string_view("dist-packages")) continue;
      if (fs::is_directory(one / kind, unknown)) all.push_back(one / kind);
    }
  }
  return all;
}

class EnvironmentFolder {
 public:
  EnvironmentFolder(const fs::path& folder, const std::string& shown, Conversion& to)
      : folder_(folder), place_{shown, 0}, to_(to) {}

  void convert() {
    const bool conda = is_there("conda-meta");
    if (conda) {
      CondaPackages packages(to_);
      packages.set_lists_all(true);
      for (const fs::path& record : sorted_entries(folder_ / "conda-meta")) {
        const std::string name = record.filename().string();
        if (name.ends_with(".json"))
          packages.package(place_, name.substr(0, name.size() - 5) + ".conda");
      }
      packages.finish();
    } else {
      python();
    }
    for (const fs::path& packages : package_folders(folder_ / "lib")) {
      if (leads_out(packages, folder_)) {
        to_.leave_out(place_, packages.string(),
                      "it leads out of the environment's folder: name the folder that it leads to");
        continue;
      }
      for (const fs::path& one : sorted_entries(packages)) entry(one, conda);
    }
  }

 private:
  bool is_there(const char* name) const {
    std::error_code unknown;
    return fs::exists(folder_ / name, unknown);
  }

  void entry(const fs::path& one, bool conda) {
    const std::string name = one.filename().string();
    if (name.ends_with(".dist-info")) installed(one, conda);
    if (name.ends_with(".egg-link") || name.starts_with("__editable__")) {
      to_.leave_out_with_others(place_, name.substr(0, name.find('.')),
                                "installed from a folder to be edited: write `NAME @ PATH`");
    }
  }

  void python() {
    const std::string text = text_within(folder_ / "pyvenv.cfg").value_or("");
    for (const std::string_view line : split(text, '\n')) {
      const std::size_t equal = line.find('=');
      const std::string_view key = trim(line.substr(0, equal));
      if (equal == std::string_view::npos || (key != "version" && key != "version_info")) continue;
      const std::string_view value = trim(line.substr(equal + 1));
      return to_.python_version(place_, value.substr(0, value.find_first_not_of("0123456789.")));
    }
    for (const fs::path& packages : package_folders(folder_ / "lib")) {
      const std::string release = packages.parent_path().filename().string().substr(6);
      if (release != "3") return to_.python_version(place_, release);
    }
  }

  void installed(const fs::path& record, bool conda) {
    constexpr std::array<std::string_view, 6> kTools = {"pip", "setuptools",    "wheel",
                                                        "uv",  "pkg-resources", "distribute"};
    const std::string file = record.stem().string();
    const std::size_t dash = file.find('-');
    if (dash == std::string::npos) return;
    const std::string name = file.substr(0, dash);
    if (is_among(kTools, normalise_wheel_name(name))) return;
    if (conda && installer(record) == "conda") return;
    const auto direct = text_within(record / "direct_url.json");
    if (!direct)
      return to_.python_package(place_, fmt::format("{}=={}", name, file.substr(dash + 1)));
    address(name, file.substr(dash + 1), nlohmann::json::parse(*direct, nullptr, false));
  }

  std::string installer(const fs::path& record) const {
    return std::string(trim(text_within(record / "INSTALLER").value_or("")));
  }

  /// Of a file that lies in the environment; nullopt for one that a link leads out to.
  std::optional<std::string> text_within(const fs::path& path) const {
    if (leads_out(path, folder_)) return std::nullopt;
    return read_small_file_if_exists(path, size_limit::kPyproject);
  }

  void address(const std::string& name, const std::string& version, const nlohmann::json& direct) {
    const std::string url = json_text(direct, "url");
    if (url.empty()) return to_.python_package(place_, fmt::format("{}=={}", name, version));
    const auto vcs = direct.find("vcs_info");
    if (vcs != direct.end() && vcs->is_object()) {
      return to_.python_package(
          place_, fmt::format("{} @ git+{}@{}", name, url, json_text(*vcs, "commit_id")));
    }
    constexpr std::string_view kFile = "file://";
    if (!url.starts_with(kFile)) return to_.python_package(place_, name + " @ " + url);
    // A folder or wheel of this machine: by its way from the recipe, where it is below that.
    std::error_code unknown;
    const fs::path here = fs::weakly_canonical(to_.folder().empty() ? "." : to_.folder(), unknown);
    const fs::path from =
        fs::weakly_canonical(url.substr(kFile.size()), unknown).lexically_relative(here);
    if (from.empty() || *from.begin() == "..") {
      return to_.leave_out(place_, name + " @ " + url,
                           "it lies outside the recipe's folder: copy it there, or write where the "
                           "image gets it from");
    }
    to_.python_package(place_,
                       fmt::format("{} @ {}", name, from == "." ? "." : "./" + from.string()));
  }

  fs::path folder_;
  SourcePlace place_;
  Conversion& to_;
};

}  // namespace

bool is_environment_folder(const fs::path& folder) {
  std::error_code unknown;
  return fs::exists(folder / "pyvenv.cfg", unknown) ||
         fs::is_directory(folder / "conda-meta", unknown);
}

void convert_environment_folder(const fs::path& folder, const std::string& shown, Conversion& to) {
  EnvironmentFolder(folder, shown, to).convert();
}

std::vector<PythonPrefix> python_prefixes(const fs::path& root) {
  std::vector<PythonPrefix> all;
  const auto look = [&](const TreeEntry& entry) {
    if (!S_ISDIR(entry.status.st_mode)) return true;
    const fs::path folder = root / entry.path;
    const std::vector<fs::path> packages = package_folders(folder / "lib");
    if (!is_environment_folder(folder) && packages.empty()) return true;
    PythonPrefix one{entry.path};
    for (const fs::path& place : packages) {
      for (const fs::path& record : sorted_entries(place)) {
        if (record.extension() == ".dist-info") ++one.packages;
      }
    }
    all.push_back(std::move(one));
    return true;
  };
  walk_tree(root, {.visit = look, .sorted = true});
  return all;
}

}  // namespace mlenv
