// Locks of conda-lock (its documentation, "Unified lockfile format"): all that is installed, for
// several platforms, from conda and from Python's index.
#include <fmt/core.h>

#include "recipes/init/conda_packages.hpp"
#include "recipes/init/yaml_source.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kOtherCategory =
    "of a category that nothing asks for (not `main`): add with `mlenv add` what is needed";
constexpr std::string_view kPlatform = "linux-64";

class CondaLock {
 public:
  CondaLock(YamlSource& yaml, Conversion& to) : yaml_(yaml), packages_(to), to_(to) {
    packages_.set_lists_all(true);
  }

  void convert(const YamlNode& all) {
    bool some = false;
    for (const YamlNode& one : all.items) {
      if (one.kind != YamlNode::Kind::map || text(one, "platform") != kPlatform) continue;
      some = true;
      package(one);
    }
    packages_.finish();
    if (!some) {
      yaml_.leave_out(all, "package",
                      fmt::format("none is for `{}`: lock it for that platform", kPlatform));
    }
  }

 private:
  static std::string text(const YamlNode& of, std::string_view key) {
    const YamlNode* found = YamlSource::find(of, key);
    return found != nullptr && found->kind == YamlNode::Kind::scalar ? found->text : std::string();
  }

  /// `category: main`, and of newer ones `categories: [main, dev]`.
  bool is_main(const YamlNode& one) {
    const YamlNode* category = YamlSource::find(one, "category");
    if (category == nullptr) category = YamlSource::find(one, "categories");
    if (category == nullptr) return true;
    for (const YamlNode* each : yaml_.texts(*category, "category")) {
      if (each->text == "main") return true;
    }
    return false;
  }

  void package(const YamlNode& one) {
    const std::string name = text(one, "name");
    const std::string version = text(one, "version");
    if (!is_main(one)) return to_.leave_out_with_others(yaml_.place(one), name, kOtherCategory);
    if (text(one, "manager") == "pip") return of_pip(one, name, version);
    const std::string of_build = build(text(one, "url"));  // with one a single `=` is that version
    packages_.package(yaml_.place(one), fmt::format("{}{}{}{}", name, of_build.empty() ? "==" : "=",
                                                    version, of_build));
  }

  void of_pip(const YamlNode& one, const std::string& name, const std::string& version) {
    const std::string url = text(one, "url");
    const bool repository = url.starts_with("git+");
    to_.python_package(yaml_.place(one), repository ? name + " @ " + url : name + "==" + version);
  }

  /// `=py311h64a7726_0` of `…/numpy-1.26.0-py311h64a7726_0.conda`.
  static std::string build(std::string_view url) {
    std::string_view file = url.substr(url.rfind('/') + 1);
    for (const std::string_view ending : {".conda", ".tar.bz2"}) {
      if (!file.ends_with(ending)) continue;
      file.remove_suffix(ending.size());
      const std::size_t dash = file.rfind('-');
      if (dash != std::string_view::npos) return '=' + std::string(file.substr(dash + 1));
    }
    return {};
  }

  YamlSource& yaml_;
  CondaPackages packages_;
  Conversion& to_;
};

}  // namespace

bool convert_conda_lock(YamlSource& yaml, Conversion& to) {
  const YamlNode* all = YamlSource::find(yaml.root(), "package");
  const YamlNode* metadata = YamlSource::find(yaml.root(), "metadata");
  if (all == nullptr || all->kind != YamlNode::Kind::list || metadata == nullptr) return false;
  CondaLock(yaml, to).convert(*all);
  yaml.leave_out_others(yaml.root(), {"version", "metadata", "package"});
  return true;
}

}  // namespace mlenv
