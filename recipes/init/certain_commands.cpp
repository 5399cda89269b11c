#include "recipes/init/certain_commands.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include <fnmatch.h>

#include "recipes/init/run_prefix.hpp"
#include "recipes/init/shell_script.hpp"
#include "recipes/init/step_words.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

using NodeKind = ShellNode::Kind;

/// Values that BuildKit itself gives an argument.
constexpr std::array<std::string_view, 8> kPlatformArguments = {
    "TARGETPLATFORM", "TARGETARCH",   "TARGETOS",  "TARGETVARIANT",
    "BUILDPLATFORM",  "BUILDVARIANT", "BUILDARCH", "BUILDOS"};

bool names_some_variable(std::string_view text) {
  std::size_t at = text.find('$');
  while (at != std::string_view::npos) {
    std::string_view name = text.substr(at + 1);
    while (!name.empty() && (name.front() == '{' || name.front() == '#')) name.remove_prefix(1);
    std::size_t end = 0;
    while (end < name.size() && (is_alphanumeric(name[end]) || name[end] == '_')) ++end;
    if (end > 0 && !is_among(kPlatformArguments, name.substr(0, end))) return true;
    at = text.find('$', at + 1);
  }
  return false;
}

/// `text` with `$NAME` and `${NAME}` replaced, not in single quotes.
std::string with_value(std::string_view text, const std::string& name, const std::string& value) {
  std::string out;
  bool single = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\'') single = !single;
    const bool variable = text[at] == '$' && !single;
    const std::size_t end = variable ? variable_end(text, at) : at + 1;
    const std::string_view part = text.substr(at, end - at);
    if (part == "$" + name || part == "${" + name + '}') {
      out += value;
    } else {
      out += part;
    }
    at = end - 1;
  }
  return out;
}

class Unfolding {
 public:
  explicit Unfolding(const ScriptValues& values) : values_(values), known_(values.known) {}

  CertainScript of(const ShellNode& whole) {
    list(whole);
    return std::move(made_);
  }

 private:
  static constexpr std::size_t kMostItems = 40;
  /// Bytes of loops taken apart: loops in loops make more of a text than can be read.
  static constexpr std::size_t kMostUnfolded = std::size_t{1} << 20U;

  std::string with_items(std::string_view text) const {
    std::string out(text);
    for (const auto& [name, value] : items_) out = with_value(out, name, value);
    return out;
  }

  /// Its simple commands, as they are written.
  std::vector<ShellCommand> leaves(const ShellNode& node) const {
    std::vector<ShellCommand> all;
    if (node.kind == NodeKind::simple) {
      all = shell_commands(with_items(node.text), known_);
      for (ShellCommand& one : all) {
        if (one.group.empty()) continue;
        for (ShellCommand& each : shell_commands(one.group, known_)) all.push_back(std::move(each));
        break;
      }
    }
    for (const ShellNode& part : node.parts) {
      for (ShellCommand& each : leaves(part)) all.push_back(std::move(each));
    }
    return all;
  }
  bool installs(const std::vector<ShellCommand>& all) const {
    return std::any_of(all.begin(), all.end(), values_.installs);
  }
  bool installs(const ShellNode& node) const { return installs(leaves(node)); }

  // What a condition is.

  std::optional<bool> decide(const ShellNode& node) const {
    if (node.redirected) return std::nullopt;
    if (node.kind == NodeKind::negated) {
      const std::optional<bool> inner = decide(node.parts.front());
      return inner ? std::optional(!*inner) : std::nullopt;
    }
    if (node.kind == NodeKind::braces) return decide(node.parts.front());
    if (node.kind == NodeKind::list) return decide_list(node);
    if (node.kind != NodeKind::simple || !node.before.empty()) return std::nullopt;
    return decide_simple(node.text);
  }

  /// `A && B`, where `decides` is false; `A || B`, where it is true.
  static std::optional<bool> joined(std::optional<bool> a, std::optional<bool> b, bool decides) {
    if (a == decides || b == decides) return decides;
    return a && b ? std::optional(!decides) : std::nullopt;
  }

  std::optional<bool> decide_list(const ShellNode& node) const {
    std::optional<bool> answer;
    for (std::size_t i = 0; i < node.parts.size(); ++i) {
      const std::optional<bool> one = decide(node.parts[i]);
      answer = node.before[i] == ';' ? one : joined(answer, one, node.before[i] == '|');
    }
    return answer;
  }

  std::optional<bool> decide_simple(std::string_view text) const {
    DockerVariables known = known_;
    for (const std::string& name : values_.empty) known.emplace(name, "");
    const std::string whole = with_shell_outputs(with_items(text), known, values_.paths);
    std::vector<ShellCommand> all = shell_commands(whole, known);
    if (all.size() != 1 || !all.front().simple || !all.front().group.empty()) return std::nullopt;
    return shell_test(std::move(all.front().words), values_.is_file);
  }

  void note(std::string_view condition) {
    while (condition.ends_with(';') || condition.ends_with(' ')) condition.remove_suffix(1);
    made_.decided.push_back({std::string(condition), names_some_variable(condition)});
  }

  // What is executed.

  void add(ShellCommand one) {
    if (made_.commands.size() < kMostCertainCommands) made_.commands.push_back(std::move(one));
  }

  void emit(std::string_view text) {
    const std::string plain = with_items(text);
    std::vector<ShellCommand> all = shell_commands(plain, known_);
    const bool control = std::any_of(all.begin(), all.end(), [](const ShellCommand& one) {
      return one.control && one.group.empty();
    });
    if (control) {  // in a pipe
      ShellCommand one = all.front();
      one.text = plain;
      one.control = one.simple = one.alone = false;
      add(std::move(one));
      return;
    }
    if (all.size() == 1) assign(all.front());
    const bool wanted = std::any_of(all.begin(), all.end(), [&](const ShellCommand& one) {
      return values_.installs(one) || (!one.words.empty() && one.words.front() == "cd");
    });
    if (wanted) {
      const std::string whole = with_shell_outputs(plain, known_, values_.paths);
      if (whole != plain) all = shell_commands(whole, known_);
    }
    if (is_ordinary_pipe(all)) {
      ShellCommand pipe;
      pipe.text = plain;
      pipe.words = all.front().words;
      for (const ShellCommand& one : all) {
        if (fetches(program_words(one))) pipe.words = one.words;
      }
      pipe.inside = std::move(all);
      return add(std::move(pipe));
    }
    for (ShellCommand& one : all) {
      const bool leaves_loop = one.words.size() == 1 && !items_.empty() &&
                               (one.words.front() == "break" || one.words.front() == "continue");
      if (leaves_loop) continue;
      add(std::move(one));
    }
  }

  /// `NAME=value` alone: later commands of the script see it.
  void assign(const ShellCommand& one) {
    std::string_view text = trim(one.text);
    if (text.starts_with("export ")) text = trim(text.substr(7));
    const std::size_t equal = text.find('=');
    if (equal == std::string_view::npos || !is_env_name(text.substr(0, equal))) return;
    const std::string whole = with_shell_outputs(text, known_, values_.paths);
    const std::vector<ShellCommand> read = shell_commands(whole, known_);
    const std::string name(text.substr(0, equal));
    if (read.size() == 1 && read.front().simple && read.front().words.size() == 1) {
      known_[name] = read.front().words.front().substr(equal + 1);
    } else {
      known_.erase(name);
    }
  }

  /// As one: a step may hold it.
  void whole(const ShellNode& node, std::string_view text) {
    ShellCommand one;
    one.text = with_items(text);
    one.inside = leaves(node);
    if (one.inside.empty()) return;
    one.words = one.inside.front().words;
    for (const ShellCommand& each : one.inside) {
      if (fetches(program_words(each))) one.words = each.words;
    }
    add(std::move(one));
  }
  void whole(const ShellNode& node) { whole(node, node.text); }

  /// `NAME=value` alone, which does not fail.
  bool is_assignment(const ShellNode& node) const {
    if (node.kind != NodeKind::simple) return false;
    const std::vector<ShellCommand> all = shell_commands(node.text, known_);
    return all.size() == 1 && program_words(all.front()).empty();
  }

  /// How it ended; nullopt: that is not known.
  std::optional<bool> run(const ShellNode& node) {
    if (node.redirected) {
      whole(node);
      return std::nullopt;
    }
    switch (node.kind) {
      case NodeKind::simple: {
        if (const std::optional<bool> answer = decide(node)) return answer;
        emit(node.text);
        return std::nullopt;
      }
      case NodeKind::braces:
        return list(node.parts.front());
      case NodeKind::list:
        return list(node);
      case NodeKind::condition:
        condition(node);
        return std::nullopt;
      case NodeKind::choice:
        choice(node);
        return std::nullopt;
      case NodeKind::items:
        items(node);
        return std::nullopt;
      case NodeKind::negated:
      case NodeKind::loop:
        if (const std::optional<bool> answer = decide(node)) return answer;
        whole(node);
        return std::nullopt;
    }
    return std::nullopt;
  }

  /// Commands that change nothing, or only end the build.
  static bool is_harmless(const ShellNode& node) {
    if (node.kind == NodeKind::braces || node.kind == NodeKind::list) {
      return std::all_of(node.parts.begin(), node.parts.end(), is_harmless);
    }
    if (node.kind != NodeKind::simple || !node.before.empty()) return false;
    constexpr std::array<std::string_view, 9> kHarmless = {
        "true", ":", "exit", "echo", "printf", "break", "continue", "sleep", "return"};
    const std::string_view text = node.text;
    return is_among(kHarmless, text.substr(0, text.find_first_of(" \t;"))) &&
           text.find('>') == std::string_view::npos;
  }

  /// `A && B || C`, and what stands on lines of its own.
  std::optional<bool> list(const ShellNode& node) {
    std::optional<bool> status;
    for (std::size_t i = 0; i < node.parts.size(); ++i) {
      const char before = node.before[i];
      const bool skipped = (before == '&' && status == false) || (before == '|' && status == true);
      if (skipped) {
        const bool known = decide(node.parts[i - 1]).has_value();
        if (known && !is_harmless(node.parts[i])) note(node.parts[i - 1].text);
        continue;
      }
      const bool other = i + 1 < node.parts.size() && node.before[i + 1] == '|';
      status = decide(node.parts[i]);
      if (status) {
        if (before == ';' && i + 1 < node.parts.size() && node.before[i + 1] != ';') {
          note(node.parts[i].text);
        }
        continue;
      }
      if (other && !is_assignment(node.parts[i])) {
        i = alternatives(node, i);
        status = true;
        continue;
      }
      run(node.parts[i]);
      // A command that fails ends the build.
      status = true;
    }
    return status;
  }

  /// `A || B`, where it is not known how A ends; where the last of them stands.
  std::size_t alternatives(const ShellNode& node, std::size_t first) {
    std::size_t last = first;
    while (last + 1 < node.parts.size() && node.before[last + 1] == '|') ++last;
    const bool harmless =
        std::all_of(node.parts.begin() + static_cast<std::ptrdiff_t>(first) + 1,
                    node.parts.begin() + static_cast<std::ptrdiff_t>(last) + 1, is_harmless);
    const bool some = installs(node.parts[first]);
    if (harmless && (some || is_harmless(node.parts[first]))) {
      run(node.parts[first]);
      return last;
    }
    const char* begin = node.parts[first].text.data();
    const std::string_view end = node.parts[last].text;
    ShellNode both{NodeKind::list};
    both.text = {begin, static_cast<std::size_t>(end.data() + end.size() - begin)};
    for (std::size_t i = first; i <= last; ++i) both.parts.push_back(node.parts[i]);
    if (installs(both)) {
      emit(both.text);
    } else {
      whole(both);
    }
    return last;
  }

  void condition(const ShellNode& node) {
    for (std::size_t i = 0; i + 1 < node.parts.size(); i += 2) {
      const std::optional<bool> answer = decide(node.parts[i]);
      if (!answer) return whole(node);
      note(node.parts[i].text);
      if (*answer) {
        list(node.parts[i + 1]);
        return;
      }
    }
    if (node.parts.size() % 2 == 1) list(node.parts.back());
  }

  void choice(const ShellNode& node) {
    const std::string text = with_shell_outputs(with_items(node.words), known_, values_.paths);
    const std::vector<ShellCommand> word = shell_commands("x " + text, known_);
    if (word.size() != 1 || !word.front().simple || word.front().words.size() != 2) {
      return whole(node);
    }
    for (std::size_t i = 0; i < node.patterns.size(); ++i) {
      for (const std::string_view pattern : split(node.patterns[i], '|')) {
        const std::vector<ShellCommand> read =
            shell_commands("x " + std::string(trim(pattern)), known_);
        if (read.size() != 1 || read.front().words.size() != 2) return whole(node);
        if (fnmatch(read.front().words[1].c_str(), word.front().words[1].c_str(), 0) != 0) continue;
        note(node.words);
        list(node.parts[i]);
        return;
      }
    }
    note(node.words);
  }

  std::optional<std::vector<std::string>> words_of_items(std::string_view text) const {
    const std::string whole = with_shell_outputs(with_items(text), known_, values_.paths);
    const std::vector<ShellCommand> read = shell_commands("x " + whole, known_);
    if (read.size() != 1 || !read.front().simple) return std::nullopt;
    std::vector<std::string> all;
    for (std::size_t i = 1; i < read.front().words.size(); ++i) {
      const std::string& word = read.front().words[i];
      if (word.find_first_of("*?[") == std::string::npos) {
        all.push_back(word);
        continue;
      }
      const std::vector<std::string> found =
          values_.paths ? values_.paths(word) : std::vector<std::string>();
      if (found.empty()) return std::nullopt;
      all.insert(all.end(), found.begin(), found.end());
    }
    return all.size() > kMostItems ? std::nullopt : std::optional(all);
  }

  void items(const ShellNode& node) {
    const std::optional<std::vector<std::string>> all = words_of_items(node.words);
    const std::vector<ShellCommand> inside = leaves(node.parts.front());
    if (!all || !installs(inside)) return whole(node);
    unfolded_ += node.text.size() * all->size();
    if (unfolded_ > kMostUnfolded) return whole(node);
    const std::string name(node.name);
    // One that tries again.
    const bool once = std::any_of(inside.begin(), inside.end(), [](const ShellCommand& one) {
      return !one.words.empty() && one.words.front() == "break";
    });
    for (const std::string& item : *all) {
      items_[name] = item;
      known_[name] = item;
      list(node.parts.front());
      if (once) break;
    }
    items_.erase(name);
  }

  const ScriptValues& values_;
  DockerVariables known_;
  DockerVariables items_;  ///< of loops, which texts name
  CertainScript made_;
  std::size_t unfolded_ = 0;
};

}  // namespace

CertainScript certain_commands(std::string_view text, const ScriptValues& values) {
  const std::optional<ShellNode> whole = read_shell_script(text);
  if (!whole) return {shell_commands(text, values.known), {}};
  return Unfolding(values).of(*whole);
}

}  // namespace mlenv
