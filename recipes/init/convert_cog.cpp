// cog.yaml (Cog's documentation, "cog.yaml reference").
#include <fmt/core.h>

#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/init/build_commands.hpp"
#include "recipes/init/yaml_source.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

class Cog {
 public:
  Cog(const ConversionSource& source, Conversion& to)
      : source_(source), yaml_(source, to), to_(to) {}

  void convert() {
    to_.python_has_headers();
    const YamlNode& root = yaml_.root();
    if (const YamlNode* image = YamlSource::find(root, "image")) {
      const std::string& name = image->text;
      to_.draft.name = image_name_from(name.substr(name.rfind('/') + 1));
    }
    const YamlNode* build = YamlSource::find(root, "build");
    if (build != nullptr) read(*build, "build.");
    const YamlNode* variables = YamlSource::find(root, "environment");
    if (variables != nullptr && variables->kind == YamlNode::Kind::map) {
      read(*variables, "environment.");  // the name of `build` in Cog's first releases
    } else if (variables != nullptr) {
      for (const YamlNode* one : yaml_.texts(*variables, "environment")) {
        const std::size_t equal = one->text.find('=');
        to_.env(yaml_.place(*one), one->text.substr(0, equal),
                equal == std::string::npos ? "" : one->text.substr(equal + 1));
      }
    }
    yaml_.leave_out_others(root, {"image", "build", "environment"});
  }

 private:
  void read(const YamlNode& build, std::string_view prefix) {
    if (const YamlNode* python = YamlSource::find(build, "python_version")) {
      to_.python_version(yaml_.place(*python), python->text);
    }
    if (const YamlNode* file = YamlSource::find(build, "python_requirements")) requirements(*file);
    if (const YamlNode* list = YamlSource::find(build, "python_packages")) {
      for (const YamlNode* one : yaml_.texts(*list, "python_packages")) {
        const std::string_view name =
            std::string_view(one->text).substr(0, one->text.find_first_of("=<>!~ "));
        if (name == "pip") {
          if (name != one->text)
            yaml_.leave_out(*one, one->text, "not needed: mlenv does that itself");
          continue;
        }
        package(*one);
      }
    }
    if (const YamlNode* list = YamlSource::find(build, "system_packages")) {
      for (const YamlNode* one : yaml_.texts(*list, "system_packages")) {
        to_.system_package(yaml_.place(*one), one->text);
      }
    }
    indexes(build);
    // `pre_install` is the old name of `run`: Cog runs its commands behind those of `run`, whatever
    // it is called.
    for (const char* key : {"run", "pre_install"}) {
      if (const YamlNode* list = YamlSource::find(build, key)) commands(*list);
    }
    memory_.lists.tell_unused(to_);
    cuda(build);
    yaml_.leave_out_others(
        build,
        {"python_version", "python_requirements", "python_packages", "system_packages", "run",
         "pre_install", "python_extra_index_urls", "python_find_links", "cuda", "gpu"},
        prefix);
  }

  /// Keys that Cog had before `python_packages` took pip's options.
  void indexes(const YamlNode& build) {
    if (const YamlNode* list = YamlSource::find(build, "python_extra_index_urls")) {
      for (const YamlNode* one : yaml_.texts(*list, "python_extra_index_urls")) {
        to_.python_index(yaml_.place(*one), one->text, false);
      }
    }
    if (const YamlNode* list = YamlSource::find(build, "python_find_links")) {
      for (const YamlNode* one : yaml_.texts(*list, "python_find_links")) {
        to_.page_of_files(yaml_.place(*one), one->text);
      }
    }
  }

  /// `torch==1.12.1 --extra-index-url=https://…`: a line of pip's.
  void package(const YamlNode& one) {
    if (!says(one.text, " -")) return to_.python_package(yaml_.place(one), one.text);
    InstallCommand command{yaml_.place(one), {"pip", "install"}, one.text};
    for (const std::string_view word : split(one.text, ' ')) {
      if (!word.empty()) command.words.emplace_back(word);
    }
    convert_install(
        command, [](std::string_view) { return std::nullopt; }, to_);
  }

  void cuda(const YamlNode& build) {
    const YamlNode* release = YamlSource::find(build, "cuda");
    const YamlNode* gpu = YamlSource::find(build, "gpu");
    if (release != nullptr) return to_.cuda_release(yaml_.place(*release), release->text);
    // `gpu: true` leaves the release to Cog; here to the host, or to the framework's wheels.
    const bool none = gpu == nullptr || gpu->text == "false";
    const std::string& framework = to_.draft.framework;
    const bool has_cpu = framework.starts_with("tensorflow") || framework.starts_with("jax");
    if (none && has_cpu && to_.draft.cuda.empty()) to_.draft.cuda = "cpu";
  }

  void requirements(const YamlNode& file) {
    const fs::path path = source_.path.parent_path() / file.text;
    std::error_code unknown;
    if (!fs::is_regular_file(path, unknown)) {
      return yaml_.leave_out(file, "python_requirements: " + file.text,
                             "there is no such file here");
    }
    to_.requirements(path, path.lexically_normal().string(),
                     read_small_file(path, size_limit::kConverted));
  }

  void commands(const YamlNode& list) {
    to_.set_later_wins();
    if (list.kind == YamlNode::Kind::scalar && !trim(list.text).empty()) return command(list);
    for (const YamlNode& item : list.items) {
      const YamlNode* text = &item;
      if (item.kind == YamlNode::Kind::map) {
        text = YamlSource::find(item, "command");
        yaml_.leave_out_others(item, {"command"}, "run.");
      }
      if (text != nullptr && text->kind == YamlNode::Kind::scalar) {
        command(*text);
      } else {
        yaml_.leave_out(item, YamlSource::shown(item), "it names no command");
      }
    }
  }

  void command(const YamlNode& node) {
    const FindFile find = [&](std::string_view name) -> std::optional<fs::path> {
      fs::path path = source_.path.parent_path() / name;
      std::error_code unknown;
      if (fs::is_regular_file(path, unknown)) return path;
      return std::nullopt;
    };
    std::string text = node.text;
    // A shell's lines in a plain text, which YAML joins.
    for (std::size_t at = text.find(" \\ "); at != std::string::npos; at = text.find(" \\ ", at)) {
      text.erase(at, 2);
    }
    BuildCommands commands{yaml_.place(node), std::move(text), {}, {}, {}, {}, {}};
    memory_.text = source_.text;
    commands.memory = &memory_;
    convert_commands(commands, find, to_);
  }

  const ConversionSource& source_;
  YamlSource yaml_;
  Conversion& to_;
  CommandsMemory memory_;
};

}  // namespace

void convert_cog(const ConversionSource& source, Conversion& to) { Cog(source, to).convert(); }

}  // namespace mlenv
