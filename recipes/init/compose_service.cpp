#include "recipes/init/compose_service.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "recipes/init/yaml_source.hpp"
#include "recipes/recipe.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

class ComposeService {
 public:
  ComposeService(const ConversionSource& source, Conversion& to)
      : folder_(source.path.parent_path()), yaml_(source, to), to_(to) {}

  /// Of an editor's container, which an editor starts.
  bool convert(const std::string& name) {
    const YamlNode* services = YamlSource::find(yaml_.root(), "services");
    const YamlNode* service = services == nullptr ? nullptr : YamlSource::find(*services, name);
    if (service == nullptr || service->kind != YamlKind::map) return false;
    read(*service);
    return true;
  }

  /// The one that is built, and starts what it says itself.
  void convert_alone() {
    const YamlNode* services = YamlSource::find(yaml_.root(), "services");
    if (services == nullptr || services->kind != YamlKind::map) {
      return yaml_.leave_out(yaml_.root(), "services", "it names no service");
    }
    const YamlMember* chosen = nullptr;
    for (const YamlMember& one : services->members) {
      const bool built = YamlSource::find(one.value, "build") != nullptr;
      if (chosen == nullptr || (built && YamlSource::find(chosen->value, "build") == nullptr)) {
        chosen = &one;
      }
    }
    if (chosen == nullptr) return yaml_.leave_out(*services, "services", "it names no service");
    alone_ = true;
    how_.entrypoint = words(chosen->value, "entrypoint");
    how_.command = words(chosen->value, "command");
    read(chosen->value);
    if (YamlSource::find(chosen->value, "build") == nullptr) {
      to_.draft.command = how_.entrypoint;
      to_.draft.command.insert(to_.draft.command.end(), how_.command.begin(), how_.command.end());
    }
    const YamlNode* folder = YamlSource::find(chosen->value, "working_dir");
    if (folder != nullptr && is_clean_absolute_path(folder->text)) {
      to_.draft.workdir = folder->text;
    }
    for (const YamlMember& one : services->members) {
      if (&one == chosen) continue;
      to_.leave_out_with_others(
          yaml_.place(one.key), one.key.text,
          fmt::format("other services, each with an image of its own: this recipe is of `{}`; name "
                      "the Dockerfile of another to have its",
                      chosen->key.text));
    }
  }

  /// Compose names an image that has no name of its own after the folder and the service.
  std::optional<ProjectImage> build_of(std::string_view image) const {
    const YamlNode* services = YamlSource::find(yaml_.root(), "services");
    if (services == nullptr || services->kind != YamlKind::map) return std::nullopt;
    std::error_code unknown;
    const fs::path whole = fs::weakly_canonical(folder_.empty() ? "." : folder_, unknown);
    const std::string project = to_lower(whole.filename().string());
    for (const YamlMember& one : services->members) {
      const YamlNode* made = YamlSource::find(one.value, "build");
      if (made == nullptr) continue;
      const YamlNode* named = YamlSource::find(one.value, "image");
      const bool ours = named != nullptr
                            ? is_same_image(with_defaults(named->text), image)
                            : is_same_image(fmt::format("{}-{}", project, one.key.text), image) ||
                                  is_same_image(fmt::format("{}_{}", project, one.key.text), image);
      if (ours) return how_built(*made);
    }
    return std::nullopt;
  }

 private:
  void read(const YamlNode& service) {
    for (const YamlMember& member : service.members) {
      const std::string& key = member.key.text;
      if (alone_ && (key == "command" || key == "entrypoint" || key == "working_dir")) continue;
      if (key == "build") {
        build(member.value);
      } else if (key == "image" && YamlSource::find(service, "build") == nullptr) {
        convert_base_image(yaml_.place(member.value), with_defaults(member.value.text), to_);
      } else if (key == "environment") {
        environment(member.value);
      } else if (key != "image" && key != "container_name") {
        to_.leave_out_with_others(yaml_.place(member.key), key,
                                  "settings of runs, which no key stands for");
      }
    }
  }

  /// `${PORT:-8000}` as `8000`.
  static std::string with_defaults(const std::string& text) {
    bool complete = true;
    return expand_variables(text, {}, complete);
  }

  /// A list, or a line of the shell's words.
  std::vector<std::string> words(const YamlNode& service, std::string_view key) {
    const YamlNode* node = YamlSource::find(service, key);
    std::vector<std::string> all;
    if (node == nullptr) return all;
    for (const YamlNode& item : node->items) all.push_back(with_defaults(item.text));
    bool complete = true;
    if (node->kind == YamlKind::scalar) all = docker_words(node->text, {}, complete);
    const bool clean = complete && std::none_of(all.begin(), all.end(), [](const auto& word) {
                         return has_control(word, "\t\n") || says(word, "${");
                       });
    if (clean) return all;
    yaml_.leave_out(*node, fmt::format("{}: {}", key, YamlSource::shown(*node)),
                    "it is of the machine that runs the container");
    return {};
  }

  /// Of a service's `build`; the file need not be there.
  ProjectImage how_built(const YamlNode& node) const {
    const bool map = node.kind == YamlKind::map;
    const auto text = [&](std::string_view key) -> std::string {
      const YamlNode* found = map ? YamlSource::find(node, key) : nullptr;
      return found == nullptr ? "" : with_defaults(found->text);
    };
    const std::string context = map ? text("context") : with_defaults(node.text);
    ProjectImage made{{}, how_};
    DockerBuild& how = made.build;
    how.context = (folder_ / (context.empty() ? "." : context)).lexically_normal();
    const YamlNode* args = map ? YamlSource::find(node, "args") : nullptr;
    if (args != nullptr) {
      each(*args, [&](const YamlNode&, const std::string& name, const std::string& value) {
        const std::string known = with_defaults(value);
        if (known.find("${") == std::string::npos) how.args[name] = known;
      });
    }
    made.dockerfile =
        how.context / (text("dockerfile").empty() ? "Dockerfile" : text("dockerfile"));
    how.target = text("target");
    return made;
  }

  void build(const YamlNode& node) {
    const ProjectImage made = how_built(node);
    std::error_code unknown;
    if (!fs::is_regular_file(made.dockerfile, unknown)) {
      return yaml_.leave_out(node, made.dockerfile.lexically_normal().string(),
                             "there is no such file here");
    }
    convert_dockerfile(read_source(made.dockerfile, to_), to_, made.build);
  }

  void environment(const YamlNode& node) {
    each(node, [&](const YamlNode& at, const std::string& name, const std::string& written) {
      const std::string value = with_defaults(written);
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
  bool alone_ = false;
  DockerBuild how_;
};

}  // namespace

bool is_compose_text(const std::string& text) {
  const std::string lines = '\n' + text;
  return says(lines, "\nservices:") && !says(lines, "\ndependencies:");
}

std::optional<ProjectImage> compose_build_of(const ConversionSource& source, std::string_view image,
                                             Conversion& to) {
  return ComposeService(source, to).build_of(image);
}

void convert_compose(const ConversionSource& source, Conversion& to) {
  ComposeService(source, to).convert_alone();
}

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
