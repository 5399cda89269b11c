// Commands of a build that install a project or an environment: uv, Poetry, PDM, Pipenv, conda.
#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "recipes/init/conda_packages.hpp"
#include "recipes/init/project_install.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kToolItself = "not needed: mlenv does that itself";

/// Options and words of a command. What of `valued` has a value is told apart from words.
struct CommandLine {
  std::vector<std::pair<std::string, std::string>> options;
  std::vector<std::string> words;

  CommandLine(std::span<const std::string> all, std::span<const std::string_view> valued) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string& word = all[i];
      if (!word.starts_with('-') || word == "-") {
        words.push_back(word);
        continue;
      }
      const std::size_t equal = word.starts_with("--") ? word.find('=') : std::string::npos;
      std::string value = equal == std::string::npos ? "" : word.substr(equal + 1);
      const std::string name = word.substr(0, equal);
      if (equal == std::string::npos && is_among(valued, name) && i + 1 < all.size()) {
        value = all[++i];
      }
      options.emplace_back(name, value);
    }
  }
  bool has(std::string_view name) const {
    return std::any_of(options.begin(), options.end(),
                       [&](const auto& one) { return one.first == name; });
  }
  /// Values of an option, also where one holds several: `--with a,b`, `--extras "a b"`.
  std::vector<std::string> values(std::initializer_list<std::string_view> names) const {
    std::vector<std::string> found;
    for (const auto& [name, value] : options) {
      if (std::find(names.begin(), names.end(), name) == names.end()) continue;
      std::string text = value;
      std::replace(text.begin(), text.end(), ',', ' ');
      for (const std::string_view one : split(text, ' ')) {
        if (!one.empty()) found.emplace_back(one);
      }
    }
    return found;
  }
};

class ProjectCommand {
 public:
  ProjectCommand(const InstallCommand& command, std::span<const std::string> words,
                 const FindFile& file, Conversion& to)
      : command_(command), words_(words), file_(file), to_(to) {}

  bool convert() {
    if (words_.empty()) return false;
    const std::string_view program = std::string_view(words_[0]).substr(words_[0].rfind('/') + 1);
    const std::size_t verb = first_verb();
    if (verb >= words_.size()) return false;
    if (program == "uv") return uv(verb);
    if (program == "poetry") return tool(verb, ProjectInstall::Tool::poetry);
    if (program == "pdm") return tool(verb, ProjectInstall::Tool::pdm);
    if (program == "pipenv") return tool(verb, ProjectInstall::Tool::pipenv);
    if (program == "conda" || program == "mamba" || program == "micromamba") return conda(verb);
    return false;
  }

 private:
  static constexpr std::array<std::string_view, 22> kValued = {
      "--extra",   "--group",   "--only-group", "--with",    "--without", "--only",
      "--extras",  "-E",        "-G",           "-n",        "--name",    "-f",
      "--file",    "-c",        "--channel",    "-p",        "--prefix",  "--python",
      "--package", "--project", "--directory",  "--no-group"};

  std::size_t first_verb() const {
    std::size_t at = 1;
    while (at < words_.size() && words_[at].starts_with('-')) {
      at += is_among(kValued, words_[at]) ? 2 : 1;
    }
    return at;
  }
  void leave_out(std::string_view why) { to_.leave_out(command_.place, command_.text, why); }
  bool done() {
    leave_out(kToolItself);
    return true;
  }

  /// The project's folder on this machine.
  fs::path folder(std::string_view name) const {
    const std::optional<fs::path> file = file_(name);
    return file ? file->parent_path() : fs::path("/nonexistent");
  }

  bool uv(std::size_t verb) {
    const std::string& what = words_[verb];
    const CommandLine line(words_.subspan(verb + 1), kValued);
    if (what == "sync") {
      ProjectInstall install{ProjectInstall::Tool::uv, folder("pyproject.toml"),
                             !line.has("--no-install-project") && !line.has("--only-group"),
                             line.values({"--extra"}), line.values({"--group"})};
      if (line.has("--all-extras")) install.extras = {"*"};
      // Layers for dependencies alone come first, and the whole thing after them.
      install_project(command_.place, command_.text, install, to_);
      if (line.has("--all-groups")) {
        leave_out("all groups: name those that are needed in `requirements`");
      }
      return true;
    }
    if (what == "add" ||
        (what == "tool" && verb + 2 < words_.size() && words_[verb + 1] == "install")) {
      const std::size_t skipped = what == "tool" ? 1 : 0;
      for (std::size_t i = skipped; i < line.words.size(); ++i) {
        to_.python_package(command_.place, line.words[i]);
      }
      return true;
    }
    if (what == "python" && line.words.size() > 1 && line.words[0] == "install") {
      to_.python_version(command_.place, line.words[1]);
      return true;
    }
    if (what == "export") return exported(line, ProjectInstall::Tool::uv);
    constexpr std::array<std::string_view, 6> kTidyVerbs = {"venv", "lock", "cache",
                                                            "self", "init", "python"};
    return is_among(kTidyVerbs, what) ? done() : false;
  }

  /// What is exported is installed by a later command.
  bool exported(const CommandLine& line, ProjectInstall::Tool tool) {
    const bool pipenv = tool == ProjectInstall::Tool::pipenv;
    install_project(
        command_.place, command_.text,
        {tool, folder(pipenv ? "Pipfile" : "pyproject.toml"), false,
         line.values({"--extras", "-E", "--extra"}), line.values({"--with", "-G", "--group"})},
        to_);
    return true;
  }

  bool tool(std::size_t verb, ProjectInstall::Tool tool) {
    const std::string& what = words_[verb];
    const CommandLine line(words_.subspan(verb + 1), kValued);
    const bool pipenv = tool == ProjectInstall::Tool::pipenv;
    if (what == "export" || what == "requirements") return exported(line, tool);
    constexpr std::array<std::string_view, 10> kTidyVerbs = {
        "config", "cache", "lock", "self", "env", "check", "venv", "use", "init", "update"};
    if (is_among(kTidyVerbs, what)) return done();
    if (what != "install" && what != "sync" && what != "add") return false;
    if (!line.words.empty()) {  // `poetry add x`, `pipenv install x`
      for (const std::string& word : line.words) to_.python_package(command_.place, word);
      return true;
    }
    const bool alone = line.has("--no-root") || line.has("--no-self") || line.has("--no-directory");
    std::vector<std::string> extras = line.values({"--extras", "-E"});
    if (line.has("--all-extras") && tool == ProjectInstall::Tool::poetry) extras = {"*"};
    install_project(command_.place, command_.text,
                    {tool, folder(pipenv ? "Pipfile" : "pyproject.toml"), !alone && !pipenv,
                     std::move(extras), line.values({"--with", "-G", "--group"})},
                    to_);
    return true;
  }

  bool conda(std::size_t verb) {
    std::string what = words_[verb];
    if (what == "env" && verb + 1 < words_.size()) what = words_[++verb];
    const CommandLine line(words_.subspan(verb + 1), kValued);
    if (what == "create" || what == "install" || what == "update") {
      const std::vector<std::string> files = line.values({"-f", "--file"});
      CondaPackages packages(to_);
      for (const std::string& name : files) environment(name, packages);
      for (const std::string& word : line.words) {
        if (word != "--all") packages.package(command_.place, word);
      }
      packages.finish();
      if (files.empty() && line.words.empty()) return done();
      return true;
    }
    constexpr std::array<std::string_view, 9> kTidyVerbs = {
        "clean", "config", "init",       "activate",   "info",
        "list",  "shell",  "deactivate", "self-update"};
    return is_among(kTidyVerbs, what) ? done() : false;
  }

  void environment(const std::string& name, CondaPackages& packages) {
    const auto made = command_.made ? command_.made(name) : std::nullopt;
    const std::optional<fs::path> path =
        made && !made->source.empty() ? std::optional(made->source) : file_(name);
    if (!path) return leave_out("no such file was found here");
    const std::string before = to_.draft.name;
    ConversionSource source = read_source(*path, to_);
    if (made) {
      to_.note(command_.place, made->command, "the list is read as this leaves it");
      source.text = made->text;
    }
    if (path->extension() != ".yml" && path->extension() != ".yaml") {
      if (is_conda_list(source.text)) return convert_conda_list(source.shown, source.text, to_);
      // Names are conda's in this file, too.
      int number = 0;
      for (const std::string_view line : split(source.text, '\n')) {
        ++number;
        const std::string_view one = trim(line.substr(0, line.find('#')));
        if (!one.empty()) packages.package({source.shown, number}, std::string(one));
      }
      return;
    }
    convert_conda(source, to_);
    if (!before.empty()) to_.draft.name = before;
  }

  const InstallCommand& command_;
  std::span<const std::string> words_;
  const FindFile& file_;
  Conversion& to_;
};

}  // namespace

bool convert_project_command(const InstallCommand& command, std::span<const std::string> words,
                             const FindFile& file, Conversion& to) {
  return ProjectCommand(command, words, file, to).convert();
}

}  // namespace mlenv
