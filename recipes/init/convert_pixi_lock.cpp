// pixi.lock (Pixi's documentation, "Lock file", versions 4 to 7): all that is installed, for
// several environments and platforms, from conda and from Python's index.
#include <algorithm>
#include <array>
#include <map>

#include <fmt/core.h>

#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/init/conda_packages.hpp"
#include "recipes/init/convert_pixi.hpp"
#include "recipes/init/yaml_source.hpp"
#include "recipes/text.hpp"
#include "recipes/wheel_name.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kLockedPlatform = "linux-64";

std::string member(const YamlNode& of, std::string_view key) {
  const YamlNode* found = YamlSource::find(of, key);
  return found != nullptr && found->kind == YamlNode::Kind::scalar ? found->text : std::string();
}

/// `X` of `?subdirectory=X&rev=…`.
std::string query_value(std::string_view query, std::string_view key) {
  for (const std::string_view one : split(query, '&')) {
    const std::size_t equal = one.find('=');
    if (equal != std::string_view::npos && one.substr(0, equal) == key) {
      return std::string(one.substr(equal + 1));
    }
  }
  return {};
}

/// `git+https://h.example/x.git?rev=v1#COMMIT` as pip has it.
std::string locked_git_address(std::string_view url) {
  const std::size_t hash = std::min(url.find('#'), url.size());
  const std::string_view commit = url.substr(std::min(hash + 1, url.size()));
  const std::string_view whole = url.substr(0, hash);
  const std::size_t question = std::min(whole.find('?'), whole.size());
  const std::string_view query = whole.substr(std::min(question + 1, whole.size()));
  std::string address(whole.substr(0, question));
  if (!commit.empty()) address += fmt::format("@{}", commit);
  const std::string below = query_value(query, "subdirectory");
  return below.empty() ? address : address + "#subdirectory=" + below;
}

class PixiLock {
 public:
  PixiLock(const ConversionSource& source, Conversion& to)
      : source_(source), yaml_(source, to), packages_(to), to_(to) {
    packages_.set_lists_all(true);
  }

  void convert() {
    to_.draft.wants_python = true;
    const YamlNode* all = YamlSource::find(yaml_.root(), "environments");
    if (all == nullptr || all->kind != YamlNode::Kind::map || all->members.empty()) {
      return yaml_.leave_out(yaml_.root(), "environments", "it holds no environment");
    }
    read_packages();
    const YamlNode& chosen = environment(*all);
    of_platform(chosen);
    packages_.finish();
    const YamlNode* indexes = YamlSource::find(chosen, "indexes");
    if (indexes == nullptr) return;
    bool first = true;
    for (const YamlNode* one : yaml_.texts(*indexes, "indexes")) {
      to_.python_index(yaml_.place(*one), one->text, std::exchange(first, false));
    }
  }

 private:
  /// What is known of each file, by where it is.
  void read_packages() {
    const YamlNode* list = YamlSource::find(yaml_.root(), "packages");
    if (list == nullptr || list->kind != YamlNode::Kind::list) return;
    for (const YamlNode& one : list->items) {
      if (one.kind != YamlNode::Kind::map) continue;
      for (const std::string_view key : {"conda", "pypi", "url", "path"}) {
        if (const std::string where = member(one, key); !where.empty()) known_[where] = &one;
      }
    }
  }

  /// The one that Pixi itself takes.
  const YamlNode& environment(const YamlNode& all) {
    const YamlNode* chosen = YamlSource::find(all, "default");
    for (const YamlMember& one : all.members) {
      if (chosen == nullptr) {
        chosen = &one.value;
        to_.note(yaml_.place(one.key), one.key.text,
                 "the environment that is taken: there is none that is called `default`");
      }
      if (&one.value == chosen) continue;
      to_.leave_out_with_others(yaml_.place(one.key), one.key.text,
                                "one recipe is one environment: this is another one");
    }
    return *chosen;
  }

  void of_platform(const YamlNode& chosen) {
    const YamlNode* platforms = YamlSource::find(chosen, "packages");
    const YamlNode* files =
        platforms == nullptr ? nullptr : YamlSource::find(*platforms, kLockedPlatform);
    if (files == nullptr || files->kind != YamlNode::Kind::list) {
      return yaml_.leave_out(chosen, "packages",
                             fmt::format("none is for `{0}`: name `{0}` among the `platforms` of "
                                         "pixi.toml and lock again, or convert pixi.toml",
                                         kLockedPlatform));
    }
    for (const YamlNode& one : files->items) file(one);
  }

  void file(const YamlNode& one) {
    if (one.kind != YamlNode::Kind::map) return;
    if (const std::string url = member(one, "conda"); !url.empty()) return of_conda(one, url);
    if (const std::string where = member(one, "pypi"); !where.empty()) return of_pypi(one, where);
    yaml_.leave_out(one, YamlSource::shown(one), "neither conda's nor Python's");
  }

  void of_conda(const YamlNode& one, const std::string& url) {
    const auto known = known_.find(url);
    const YamlNode* names =
        known == known_.end() ? nullptr : YamlSource::find(*known->second, "purls");
    packages_.package(yaml_.place(one), url, name_on_pypi(names));
  }

  /// `numpy` of `purls: [pkg:pypi/numpy?source=…]`; empty: of a list without one. No list: unknown.
  static std::optional<std::string> name_on_pypi(const YamlNode* names) {
    constexpr std::string_view kKind = "pkg:pypi/";
    if (names == nullptr || names->kind != YamlNode::Kind::list) return std::nullopt;
    for (const YamlNode& one : names->items) {
      const std::string_view text = one.text;
      if (!text.starts_with(kKind)) continue;
      const std::string_view name = text.substr(kKind.size());
      return std::string(name.substr(0, name.find_first_of("@?#")));
    }
    return std::string();
  }

  void of_pypi(const YamlNode& one, const std::string& where) {
    constexpr std::string_view kDirect = "direct+";
    const auto known = known_.find(where);
    const std::string name = known == known_.end() ? "" : member(*known->second, "name");
    const std::string version = known == known_.end() ? "" : member(*known->second, "version");
    if (name.empty()) {
      return yaml_.leave_out(one, where, "the lock does not say what it is called");
    }
    std::string spec = name;
    if (where.starts_with("git+")) {
      spec += " @ " + locked_git_address(where);
    } else if (where.starts_with(kDirect)) {
      spec += " @ " + where.substr(kDirect.size());
    } else if (where.find("://") == std::string::npos) {
      spec += " @ file:" + path_from_recipe(source_.path, where, to_);
    } else if (!version.empty()) {
      spec += "==" + version;
    }
    to_.python_package(yaml_.place(one), spec);
  }

  const ConversionSource& source_;
  YamlSource yaml_;
  CondaPackages packages_;
  Conversion& to_;
  std::map<std::string, const YamlNode*, std::less<>> known_;
};

}  // namespace

void convert_pixi_lock(const ConversionSource& source, Conversion& to) {
  PixiLock(source, to).convert();
  std::error_code unknown;
  for (const char* name : {"pixi.toml", "pyproject.toml"}) {
    const fs::path manifest = source.path.parent_path() / name;
    if (!fs::is_regular_file(manifest, unknown)) continue;
    const ConversionSource beside = read_source(manifest, to);
    if (name == std::string_view("pyproject.toml") && !says(beside.text, "[tool.pixi")) continue;
    return convert_pixi_settings(beside, to);
  }
}

}  // namespace mlenv
