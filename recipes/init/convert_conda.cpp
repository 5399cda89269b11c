// Conda environments (conda's documentation, "Managing environments").
#include <algorithm>
#include <array>

#include "recipes/init/conda_packages.hpp"
#include "recipes/init/yaml_source.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

class Conda {
 public:
  Conda(const ConversionSource& source, Conversion& to)
      : source_(source), yaml_(source, to), packages_(to), to_(to) {}

  void convert() {
    to_.python_has_headers();
    to_.set_later_pins_win();
    const YamlNode& root = yaml_.root();
    if (is_of_mlflow(root)) return mlflow(root);
    if (convert_conda_lock(yaml_, to_)) return;
    if (const YamlNode* name = YamlSource::find(root, "name")) {
      to_.draft.name = image_name_from(name->text);
    }
    if (const YamlNode* all = YamlSource::find(root, "dependencies")) {
      packages_.set_lists_all(std::any_of(
          all->items.begin(), all->items.end(),
          [](const YamlNode& one) { return is_of_conda_exports(conda_spec(one.text).name); }));
      for (const YamlNode& item : all->items) dependency(item);
      packages_.finish();
    } else {
      to_.leave_out({source_.shown, 1}, "dependencies",
                    "there is no such key: is it an environment of conda?");
    }
    if (const YamlNode* variables = YamlSource::find(root, "variables")) {
      for (const YamlMember& one : variables->members) {
        conda_variable(yaml_.place(one.key), one.key.text, one.value.text, to_);
      }
    }
    if (const YamlNode* channels = YamlSource::find(root, "channels")) {
      for (const YamlNode* one : yaml_.texts(*channels, "channels")) channel(*one);
    }
    // `prefix` is where the environment was on the machine that exported it.
    // `platforms` and `category` are for conda-lock.
    yaml_.leave_out_others(
        root, {"name", "dependencies", "variables", "channels", "prefix", "platforms", "category"});
  }

 private:
  /// Each package is told for which there is nothing here; whence conda has it says no more, but
  /// where it is a server or a folder of somebody's own, or one release of a channel.
  void channel(const YamlNode& one) {
    std::string_view name = one.text;
    while (name.ends_with('/')) name.remove_suffix(1);
    if (name.ends_with("/noarch") || name.ends_with("/linux-64"))
      name = name.substr(0, name.rfind('/'));
    constexpr std::array<std::string_view, 13> kEverybodys = {
        "main",     "free",    "r",        "pro",    "msys2",    "defaults", "conda-forge",
        "anaconda", "pytorch", "bioconda", "nvidia", "rapidsai", "pyg"};
    const bool path = name.find("://") != std::string_view::npos || name.starts_with('/') ||
                      name.starts_with('.') || name.starts_with('~');
    const bool own = path && !is_among(kEverybodys, name.substr(name.rfind('/') + 1));
    if (!own && name.find("/label/") == std::string_view::npos) return;
    to_.leave_out_with_others(yaml_.place(one), one.text,
                              "channels of conda's that are not everybody's: packages are Python's "
                              "(from its index) and Debian's here, by the same names");
  }

  /// MLflow's `python_env.yaml` ("MLflow Projects", "Project environments"): `python`, and lists of
  /// pip's.
  static bool is_of_mlflow(const YamlNode& root) {
    const YamlNode* python = YamlSource::find(root, "python");
    return YamlSource::find(root, "build_dependencies") != nullptr ||
           (python != nullptr && python->kind == YamlNode::Kind::scalar);
  }

  void mlflow(const YamlNode& root) {
    if (const YamlNode* python = YamlSource::find(root, "python")) {
      to_.python_version(yaml_.place(*python), python->text);
    }
    if (const YamlNode* tools = YamlSource::find(root, "build_dependencies")) {
      for (const YamlNode* one : yaml_.texts(*tools, "build_dependencies")) {
        to_.leave_out_with_others(yaml_.place(*one), one->text,
                                  "tools that install: mlenv has its own");
      }
    }
    if (const YamlNode* all = YamlSource::find(root, "dependencies")) {
      for (const YamlNode* one : yaml_.texts(*all, "dependencies")) {
        to_.requirement_line(yaml_.place(*one), one->text, source_.path);
      }
    }
    yaml_.leave_out_others(root, {"name", "python", "build_dependencies", "dependencies"});
  }

  void dependency(const YamlNode& item) {
    if (item.kind == YamlNode::Kind::scalar) {
      return packages_.package(yaml_.place(item), item.text);
    }
    for (const YamlMember& member : item.members) {
      if (member.key.text != "pip") {
        yaml_.leave_out(member.key, member.key.text, "only `pip` has a list of its own");
        continue;
      }
      for (const YamlNode* one : yaml_.texts(member.value, "pip")) {
        to_.requirement_line(yaml_.place(*one), one->text, source_.path);
      }
    }
  }

  const ConversionSource& source_;
  YamlSource yaml_;
  CondaPackages packages_;
  Conversion& to_;
};

}  // namespace

void convert_conda(const ConversionSource& source, Conversion& to) { Conda(source, to).convert(); }

}  // namespace mlenv
