#include "recipes/init/compose_service.hpp"

#include <fmt/core.h>

#include "recipes/init/yaml_source.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

class ComposeService {
 public:
  ComposeService(const ConversionSource& source, Conversion& to)
      : folder_(source.path.parent_path()), yaml_(source, to), to_(to) {}

  /// False: there is no such service.
  bool convert(const std::string& name) {
    const YamlNode* services = YamlSource::find(yaml_.root(), "services");
    const YamlNode* service = services == nullptr ? nullptr : YamlSource::find(*services, name);
    if (service == nullptr || service->kind != YamlKind::map) return false;
    for (const YamlMember& member : service->members) {
      const std::string& key = member.key.text;
      if (key == "build") {
        build(member.value);
      } else if (key == "image" && YamlSource::find(*service, "build") == nullptr) {
        convert_base_image(yaml_.place(member.value), member.value.text, to_);
      } else if (key == "environment") {
        environment(member.value);
      } else if (key != "image" && key != "container_name") {
        to_.leave_out_with_others(yaml_.place(member.key), key,
                                  "settings of runs, which no key stands for");
      }
    }
    return true;
  }

 private:
  void build(const YamlNode& node) {
    const bool map = node.kind == YamlKind::map;
    const auto text = [&](std::string_view key) -> std::string {
      const YamlNode* found = map ? YamlSource::find(node, key) : nullptr;
      return found == nullptr ? "" : found->text;
    };
    const std::string context = map ? text("context") : node.text;
    DockerBuild how;
    how.context = (folder_ / (context.empty() ? "." : context)).lexically_normal();
    const YamlNode* args = map ? YamlSource::find(node, "args") : nullptr;
    if (args != nullptr) {
      each(*args, [&](const YamlNode&, const std::string& name, const std::string& value) {
        if (value.find("${") == std::string::npos) how.args[name] = value;
      });
    }
    const fs::path path =
        how.context / (text("dockerfile").empty() ? "Dockerfile" : text("dockerfile"));
    std::error_code unknown;
    if (!fs::is_regular_file(path, unknown)) {
      return yaml_.leave_out(node, path.lexically_normal().string(), "there is no such file here");
    }
    how.target = text("target");
    convert_dockerfile(read_source(path, to_), to_, how);
  }

  void environment(const YamlNode& node) {
    each(node, [&](const YamlNode& at, const std::string& name, const std::string& value) {
      if (value.find('$') != std::string::npos) {
        yaml_.leave_out(at, fmt::format("{}={}", name, value),
                        "it is of the machine that runs the container");
      } else {
        to_.env(yaml_.place(at), name, value);
      }
    });
  }

  /// Of a map, or a list of `NAME=value`.
  template <typename Take>
  static void each(const YamlNode& node, Take take) {
    for (const YamlMember& member : node.members) {
      take(member.value, member.key.text, member.value.text);
    }
    for (const YamlNode& item : node.items) {
      const std::size_t equal = item.text.find('=');
      if (equal == std::string::npos) continue;  // that of the machine
      take(item, item.text.substr(0, equal), item.text.substr(equal + 1));
    }
  }

  fs::path folder_;
  YamlSource yaml_;
  Conversion& to_;
};

}  // namespace

void convert_compose_service(const SourcePlace& place, const fs::path& file,
                             const std::string& service, bool first, Conversion& to) {
  std::error_code unknown;
  if (!fs::is_regular_file(file, unknown)) {
    return to.leave_out(place, file.filename().string(), "there is no such file here");
  }
  const ConversionSource source = read_source(file, to);
  if (ComposeService(source, to).convert(service) || !first) return;
  to.leave_out({source.shown, 0}, service, "there is no such service in it");
}

}  // namespace mlenv
