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
#include "recipes/init/known_repositories.hpp"
#include "recipes/module_distributions.hpp"
#include "recipes/notebook_cells.hpp"
#include "recipes/python_library.hpp"
#include "recipes/requirement_name.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kOfCells =
    "commands of cells, by their cells' numbers: they run with the notebook";

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
    for (const CodeCell& cell : code_cells(root)) code(cell.number, cell.text);
    memory_.lists.tell_unused(to_);
    to_.python_package({source_.shown, 0}, "ipykernel");
    imports();
  }

 private:
  void language(const nlohmann::json& metadata) {
    const auto info = metadata.find("language_info");
    if (info == metadata.end() || !info->is_object()) return;
    const std::string version = json_text(*info, "version");
    // The kernel's that wrote it last: its third number is nobody's wish.
    if (!version.empty()) to_.python_version({source_.shown, 0}, version_prefix(version, 2));
  }

  void code(int cell, const std::string& text) {
    std::string command;
    if (is_script(text)) return script(cell, text);
    if (const std::string_view first = trim(first_line(trim(text)));
        first.starts_with("%%writefile")) {
      written_.insert(fs::path(first.substr(first.rfind(' ') + 1)).stem().string());
      return;
    }
    for (const std::string_view raw : split(text, '\n')) {
      std::string_view line = trim(raw);
      if (!command.empty()) {  // goes on
        command += ' ';
      } else if (line.starts_with('!') || line.starts_with('%')) {
        line = without_mark(line);
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

  /// `pip install x` of `!pip install x`, `%pip install x`, `%shell pip install x`.
  static std::string_view without_mark(std::string_view line) {
    if (line.starts_with("%%")) return {};
    line.remove_prefix(line.starts_with("!!") ? 2 : 1);
    for (const std::string_view magic : {"shell ", "system ", "sx ", "sc "}) {
      if (line.starts_with(magic)) line = trim(line.substr(magic.size()));
    }
    return line;
  }

  /// `%%bash`, `%%sh`: the cell is a shell's.
  static bool is_script(std::string_view text) {
    const std::string_view line = trim(first_line(trim(text)));
    const std::string_view magic = line.substr(0, line.find_first_of(" \t"));
    return magic == "%%bash" || magic == "%%sh" || magic == "%%shell" || magic == "%%script";
  }
  void script(int cell, const std::string& text) {
    const std::size_t end = text.find('\n', text.find("%%"));
    if (end == std::string::npos) return;
    commands(cell, text.substr(end + 1));
  }

  /// A line of the shell, or a magic of the same name: `%pip install x`.
  void run(int cell, const std::string& command) {
    const std::string_view line = trim(command);
    if (line.empty()) return;
    const std::string_view first = line.substr(0, line.find_first_of(" \t"));
    constexpr std::array<std::string_view, 16> kInstalls = {
        "pip", "pip3",   "apt",     "apt-get", "sudo",       "conda", "mamba", "uv",
        "git", "python", "python3", "poetry",  "micromamba", "grep",  "sed",   "mim"};
    constexpr std::array<std::string_view, 22> kOfTheSession = {
        "matplotlib",  "load_ext", "reload_ext", "time",     "autoreload", "timeit",
        "config",      "autosave", "cd",         "ls",       "pwd",        "echo",
        "cat",         "head",     "who",        "whos",     "capture",    "pylab",
        "tensorboard", "reset",    "nvidia-smi", "precision"};
    if (first == "cd") enter(trim(line.substr(2)));
    if (!is_among(kInstalls, first)) {
      if (!is_among(kOfTheSession, first)) {
        to_.leave_out_with_others({source_.shown, cell}, line, kOfCells);
      }
      return;
    }
    commands(cell, without_expressions(cell, with_values(std::string(line))));
  }

  /// Where services start notebooks: what lies there is named from the root, and told as written.
  std::string from_root(std::string text) {
    for (const std::string_view root : {"/content/", "/kaggle/working/"}) {
      for (std::size_t at = text.find(root); at != std::string::npos;
           at = text.find(root, at + 1)) {
        const bool begins =
            at == 0 || is_blank(text[at - 1]) || says("'\"=\n", text.substr(at - 1, 1));
        if (!begins) continue;
        const std::size_t end = std::min(text.find_first_of(" \t\n'\";&|()", at), text.size());
        const std::string written = text.substr(at, end - at);
        text.erase(at, root.size() - 1);
        const std::string path = written.substr(root.size() - 1);
        to_.set_written_as(path, written);
        to_.check_count(of_root_.size(), "paths");
        of_root_.insert(path);
      }
    }
    return text;
  }

  /// `%cd lab`, which is a repository that a cell cloned.
  void enter(std::string_view folder) {
    std::string name(folder);
    std::erase_if(name, [](char c) { return c == '"' || c == '\''; });
    const fs::path root = folder_.empty() ? "/" : folder_;
    if (name == "/content" || name == "/kaggle/working") name = "/";
    folder_ = (root / from_root(std::move(name))).lexically_normal().string();
    while (folder_.size() > 1 && folder_.ends_with('/')) folder_.pop_back();
  }
  std::string folder_of_commands() const {
    const bool cloned = std::any_of(memory_.clones.begin(), memory_.clones.end(),
                                    [&](const Clone& one) { return is_of_clone(one, folder_); });
    return cloned ? folder_ : std::string();
  }

  void commands(int cell, std::string text) {
    const fs::path folder = source_.path.parent_path();
    const FindFile find = [&](std::string_view name) -> std::optional<fs::path> {
      std::error_code unknown;
      const bool of_root = of_root_.contains(std::string(name));
      fs::path path = folder / name.substr(of_root ? 1 : 0);
      if (fs::is_regular_file(path, unknown)) return path;
      return std::nullopt;
    };
    const SourcePlace place{source_.shown, cell};
    BuildCommands commands{place, from_root(std::move(text)), known_, {}, folder_of_commands(), {},
                           {}};
    commands.obstacle = kOfCells;
    memory_.text = source_.text;
    commands.memory = &memory_;
    convert_commands(commands, find, to_);
  }

  /// `pip install {' '.join(names)} x` as `pip install x`: what Python puts together is not known
  /// before it runs. A page or index of such an address goes with its option.
  std::string without_expressions(int cell, std::string text) {
    for (std::size_t at = text.find('{'); at != std::string::npos; at = text.find('{', at)) {
      int depth = 0;
      std::size_t end = at;
      while (end < text.size() && (depth += (text[end] == '{') - (text[end] == '}')) > 0) ++end;
      if ((at > 0 && text[at - 1] == '$') || end >= text.size()) {
        ++at;
        continue;
      }
      const std::size_t blank = text.find_last_of(" \t", at);
      std::size_t begin = blank == std::string::npos ? 0 : blank + 1;
      end = std::min(text.find_first_of(" \t", end), text.size());
      const std::string word = text.substr(begin, end - begin);
      for (const std::string_view option :
           {"-f ", "--find-links ", "-i ", "--index-url ", "--extra-index-url ", "-r "}) {
        if (text.substr(0, begin).ends_with(' ' + std::string(option))) begin -= option.size();
      }
      to_.leave_out({source_.shown, cell}, word, "Python puts it together when the cell runs");
      text.erase(begin, end - begin);
      at = begin;
    }
    return text;
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
      if (!name.empty()) known_distributions_.insert(std::string(name));
      if (name.empty()) name = module;
      if (is_own_module(module) || is_in_python_library(module) || has(name)) continue;
      wanted.emplace_back(name);
    }
    if (wanted.empty()) return;
    take_known(wanted);
    for (const std::string& one : wanted) {
      if (const std::string address = repository_of_package(one); !address.empty()) {
        to_.leave_out({source_.shown, 0}, one, fmt::format(kOfRepository, one, address));
        continue;
      }
      to_.leave_out_with_others(
          {source_.shown, 0}, one,
          "imported, and installed by no cell: `mlenv add` them, where PyPI calls them so");
    }
  }

  /// A file or folder of the project's, what a cell writes, or a repository that one clones.
  bool is_own_module(const std::string& module) const {
    const fs::path folder = source_.path.parent_path();
    for (const fs::path& each : {folder, folder / "src", folder / "..", folder / "../src"}) {
      std::error_code unknown;
      const fs::path here = each / module;
      if (fs::is_directory(here, unknown) || fs::exists(here.string() + ".py", unknown))
        return true;
    }
    const std::vector<Clone>& clones = memory_.clones;
    return written_.contains(module) ||
           std::any_of(clones.begin(), clones.end(), [&](const Clone& clone) {
             return normalise_wheel_name(fs::path(clone.path).filename().string()) ==
                    normalise_wheel_name(module);
           });
  }

  /// Where the notebook was written they were there, as on a service that has many packages.
  void take_known(std::vector<std::string>& wanted) {
    std::vector<std::string> taken;
    std::erase_if(wanted, [&](const std::string& one) {
      if (!known_distributions_.contains(one)) return false;
      to_.python_package({source_.shown, 0}, one);
      taken.push_back(one);
      return true;
    });
    if (taken.empty()) return;
    to_.note({source_.shown, 0}, join(taken, ", "),
             "imported, and installed by no cell: taken in any version");
  }

  /// `pyannote` comes with `pyannote.audio`, `IPython` with the kernel.
  bool has(std::string_view name) const {
    const std::string normal = normalise_wheel_name(name);
    if (normal == "ipython" || to_.has_package(normal)) return true;
    if (known_distributions_.contains(std::string(name))) return false;
    const std::vector<std::string>& all = to_.draft.packages;
    return std::any_of(all.begin(), all.end(), [&](const std::string& one) {
      return name_of_requirement(one).starts_with(normal + '-');
    });
  }

  const ConversionSource& source_;
  Conversion& to_;
  std::set<std::string> modules_;
  std::set<std::string> written_;              ///< modules that cells write
  std::set<std::string> known_distributions_;  ///< of modules
  DockerVariables known_;                      ///< texts that cells give names
  std::string folder_;                         ///< that a cell entered
  std::set<std::string> of_root_;              ///< paths of from_root
  CommandsMemory memory_;
};

}  // namespace

void convert_notebook(const ConversionSource& source, Conversion& to) {
  const nlohmann::json root = json_of(source, source.text);
  Notebook(source, to).convert(root);
}

}  // namespace mlenv
