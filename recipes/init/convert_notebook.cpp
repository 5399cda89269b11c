// Notebooks (nbformat's documentation, "The Notebook file format"): what their cells install, and
// what they import.
#include <algorithm>
#include <array>
#include <set>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "recipes/init/build_commands.hpp"
#include "recipes/init/converters.hpp"
#include "recipes/init/json_source.hpp"
#include "recipes/module_distributions.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// Of Python's own, those that notebooks import most.
constexpr std::array<std::string_view, 62> kOwnModules = {
    "os",         "sys",        "re",         "json",        "math",      "time",
    "random",     "datetime",   "pathlib",    "collections", "itertools", "functools",
    "typing",     "glob",       "shutil",     "subprocess",  "io",        "copy",
    "pickle",     "warnings",   "logging",    "argparse",    "csv",       "string",
    "urllib",     "zipfile",    "tarfile",    "tempfile",    "threading", "multiprocessing",
    "concurrent", "asyncio",    "contextlib", "dataclasses", "enum",      "gc",
    "hashlib",    "base64",     "inspect",    "operator",    "platform",  "pprint",
    "statistics", "struct",     "textwrap",   "traceback",   "types",     "unittest",
    "uuid",       "__future__", "abc",        "ast",         "bisect",    "calendar",
    "codecs",     "getpass",    "heapq",      "html",        "importlib", "queue",
    "signal",     "sqlite3"};
class Notebook {
 public:
  Notebook(const ConversionSource& source, Conversion& to) : source_(source), to_(to) {}

  void convert(const nlohmann::json& root) {
    const auto metadata = root.find("metadata");
    if (metadata != root.end() && metadata->is_object()) language(*metadata);
    const auto cells = root.find("cells");
    if (cells == root.end() || !cells->is_array()) {
      return to_.leave_out({source_.shown, 0}, source_.shown, "it holds no cells");
    }
    to_.set_later_wins();
    int number = 0;
    for (const nlohmann::json& cell : *cells) {
      ++number;
      if (json_text(cell, "cell_type") != "code") continue;
      code(number, source_of(cell));
    }
    to_.python_package({source_.shown, 0}, "ipykernel");
    imports();
  }

 private:
  void language(const nlohmann::json& metadata) {
    const auto info = metadata.find("language_info");
    if (info == metadata.end() || !info->is_object()) return;
    const std::string version = json_text(*info, "version");
    if (!version.empty()) to_.python_version({source_.shown, 0}, version);
  }

  static std::string source_of(const nlohmann::json& cell) {
    const auto found = cell.find("source");
    if (found == cell.end()) return {};
    if (found->is_string()) return found->get<std::string>();
    std::string text;
    if (found->is_array()) {
      for (const nlohmann::json& line : *found) {
        if (line.is_string()) text += line.get<std::string>();
      }
    }
    return text;
  }

  void code(int cell, const std::string& text) {
    std::string command;
    for (const std::string_view raw : split(text, '\n')) {
      std::string_view line = trim(raw);
      if (!command.empty()) {  // goes on
        command += ' ';
      } else if (line.starts_with('!') || line.starts_with('%')) {
        line.remove_prefix(line.starts_with("%%") ? line.size() : 1);
      } else {
        module(line);
        assignment(line);
        continue;
      }
      const bool goes_on = line.ends_with('\\');
      if (goes_on) line.remove_suffix(1);
      command += line;
      if (!goes_on) run(cell, std::exchange(command, {}));
    }
    if (!command.empty()) run(cell, command);
  }

  /// A line of the shell, or a magic of the same name: `%pip install x`.
  void run(int cell, const std::string& command) {
    const std::string_view line = trim(command);
    if (line.empty()) return;
    const std::string_view first = line.substr(0, line.find_first_of(" \t"));
    constexpr std::array<std::string_view, 12> kInstalls = {
        "pip",   "pip3", "apt",    "apt-get", "sudo",   "conda",
        "mamba", "uv",   "python", "python3", "poetry", "micromamba"};
    const fs::path folder = source_.path.parent_path();
    const FindFile find = [&](std::string_view name) -> std::optional<fs::path> {
      std::error_code unknown;
      fs::path path = folder / name;
      if (fs::is_regular_file(path, unknown)) return path;
      return std::nullopt;
    };
    if (!is_among(kInstalls, first)) {
      if (first != "matplotlib" && first != "load_ext" && first != "time" &&
          first != "autoreload" && first != "timeit" && first != "config") {
        to_.leave_out_with_others(
            {source_.shown, cell}, line,
            "commands of cells, by their cells' numbers: they run with the notebook");
      }
      return;
    }
    BuildCommands commands{
        {source_.shown, cell}, with_values(std::string(line)), known_, {}, {}, {}, {}};
    commands.obstacle = "a command of a cell, which runs with the notebook";
    convert_commands(commands, find, to_);
  }

  /// `BRANCH = 'r1.2'`, which commands name as `$BRANCH` or `{BRANCH}`.
  void assignment(std::string_view line) {
    const std::size_t equal = line.find('=');
    if (equal == std::string_view::npos) return;
    const std::string name(trim(line.substr(0, equal)));
    const std::string_view value = trim(line.substr(equal + 1));
    if (!is_env_name(name) || value.size() < 2) return;
    const char quote = value.front();
    const std::string_view inner = value.substr(1, value.size() - 2);
    if ((quote != '"' && quote != '\'') || value.back() != quote ||
        inner.find(quote) != std::string_view::npos) {
      return;
    }
    known_[name] = inner;
    to_.check_count(known_.size(), "variables", Conversion::kMostVariables);
  }

  /// With `{NAME}` replaced.
  std::string with_values(std::string text) const {
    for (const auto& [name, value] : known_) {
      const std::string braced = '{' + name + '}';
      const std::size_t at = text.find(braced);
      const bool shells = at != 0 && at != std::string::npos && text[at - 1] == '$';
      if (at != std::string::npos && !shells) text.replace(at, braced.size(), value);
    }
    return text;
  }

  /// `import a.b as c, d` and `from a.b import c`.
  void module(std::string_view line) {
    constexpr std::string_view kImport = "import ";
    constexpr std::string_view kFrom = "from ";
    const bool from = line.starts_with(kFrom) && says(line, " import ");
    if (!from && !line.starts_with(kImport)) return;
    line.remove_prefix(from ? kFrom.size() : kImport.size());
    if (from) line = line.substr(0, line.find(" import "));
    line = line.substr(0, line.find('#'));
    for (std::string_view one : split(line, ',')) {
      one = trim(one);
      one = one.substr(0, one.find_first_of(". \t;("));
      if (!one.empty() && is_env_name(one)) modules_.insert(std::string(one));
    }
  }

  void imports() {
    std::vector<std::string> wanted;
    for (const std::string& module : modules_) {
      if (module == "google") continue;  // many packages share it
      std::string_view name = distribution_of_module(module);
      if (name.empty()) name = module;
      std::error_code unknown;
      const fs::path here = source_.path.parent_path() / module;
      const bool local =
          fs::is_directory(here, unknown) || fs::exists(here.string() + ".py", unknown);
      if (local || is_among(kOwnModules, module) || has(name)) continue;
      wanted.emplace_back(name);
    }
    if (wanted.empty()) return;
    for (const std::string& one : wanted) {
      to_.leave_out_with_others(
          {source_.shown, 0}, one,
          "imported, and installed by no cell: `mlenv add` them, where PyPI calls them so");
    }
  }

  bool has(std::string_view name) const {
    const std::string wanted = normalise_wheel_name(name);
    const auto is = [&](const std::string& package) {
      return normalise_wheel_name(package.substr(0, package.find_first_of(" [=<>!~;@"))) == wanted;
    };
    const std::string& framework = to_.draft.framework;
    if (wanted == "torch" && framework.starts_with("pytorch")) return true;
    return is(framework) || std::any_of(to_.draft.packages.begin(), to_.draft.packages.end(), is);
  }

  const ConversionSource& source_;
  Conversion& to_;
  std::set<std::string> modules_;
  DockerVariables known_;  ///< texts that cells give names
};

}  // namespace

void convert_notebook(const ConversionSource& source, Conversion& to) {
  const nlohmann::json root = json_of(source, source.text);
  Notebook(source, to).convert(root);
}

}  // namespace mlenv
