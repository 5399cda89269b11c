#include "recipes/init/listed_words.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/init/run_prefix.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

using ListWords = std::vector<std::string>;

constexpr std::array<std::string_view, 8> kReaders = {"cat", "grep", "egrep", "sed",
                                                      "awk", "tr",   "sort",  "xargs"};

/// The file among the words of `grep -v '^#' list.txt`, by its name in the image.
std::string file_among(const ListWords& words, const FindFile& file) {
  if (words.empty() || !is_among(kReaders, words.front())) return {};
  for (std::size_t i = words.size(); i-- > 1;) {
    if (!words[i].starts_with('-') && file(words[i])) return words[i];
  }
  return {};
}

/// `pip install -r <(cat a.txt b.txt)` as `-r a.txt -r b.txt`; false: there is none such.
bool take_process(ListWords& words, const FindFile& file) {
  for (std::size_t at = 1; at < words.size(); ++at) {
    if (!words[at].starts_with("<(") || !words[at].ends_with(')') || words[at - 1] != "-r")
      continue;
    const std::vector<ShellCommand> inside =
        shell_commands(std::string_view(words[at]).substr(2, words[at].size() - 3), {});
    ListWords lists;
    if (inside.empty() || inside.front().words.empty()) return false;
    for (const std::string& word : inside.front().words) {
      if (file(word)) lists.insert(lists.end(), {"-r", word});
    }
    if (lists.empty()) return false;
    const auto begin = words.begin() + static_cast<std::ptrdiff_t>(at - 1);
    words.insert(words.erase(begin, begin + 2), lists.begin(), lists.end());
    return true;
  }
  return false;
}

/// `xargs -a FILE -n 1 pip install`: what it starts, and what it reads.
struct Xargs {
  std::size_t starts = 0;  ///< where the words of the other program begin
  std::string file{};
};
Xargs xargs_of(const ListWords& words, std::size_t at) {
  constexpr std::array<std::string_view, 7> kValues = {"-n", "-L", "-P", "-d", "-s", "-E", "-I"};
  Xargs found;
  for (++at; at < words.size() && words[at].starts_with('-'); ++at) {
    const std::string& word = words[at];
    constexpr std::string_view kArgFile = "--arg-file=";
    if (word.starts_with(kArgFile)) found.file = word.substr(kArgFile.size());
    if (word == "-a" && at + 1 < words.size()) {
      found.file = words[++at];
    } else if (is_among(kValues, word)) {
      ++at;
    }
  }
  found.starts = at;
  return found;
}

class Lists {
 public:
  Lists(std::vector<ShellCommand> commands, const FindFile& file)
      : commands_(std::move(commands)), file_(file) {}

  std::vector<ShellCommand> replaced() {
    for (std::size_t i = 0; i < commands_.size(); ++i) {
      if (!commands_[i].inside.empty()) {
        out_.push_back(std::move(commands_[i]));
        continue;
      }
      const std::size_t at = prefix_length(commands_[i].words);
      const bool xargs = at < commands_[i].words.size() && commands_[i].words[at] == "xargs";
      if (xargs ? by_xargs(i, at) : take_process(commands_[i].words, file_) || by_substitution(i)) {
        commands_[i].simple = true;
        commands_[i].input.clear();
      }
      out_.push_back(std::move(commands_[i]));
    }
    return std::move(out_);
  }

 private:
  bool by_xargs(std::size_t i, std::size_t at) {
    ShellCommand& one = commands_[i];
    Xargs found = xargs_of(one.words, at);
    std::size_t readers = 0;  // before it, in the pipe
    if (found.file.empty()) found.file = one.input;
    while (found.file.empty() && readers < out_.size() && !one.alone) {
      const ShellCommand& before = out_[out_.size() - ++readers];
      if (before.alone) return false;
      found.file = before.input.empty() ? file_among(before.words, file_) : before.input;
    }
    const auto begin = one.words.begin();
    ListWords words(begin, begin + static_cast<std::ptrdiff_t>(at));
    words.insert(words.end(), begin + static_cast<std::ptrdiff_t>(found.starts), one.words.end());
    if (found.file.empty() || !put(words, words.size(), found.file)) return false;
    one.words = std::move(words);
    one.alone = true;
    out_.resize(out_.size() - readers);
    return true;
  }

  /// `apt-get install -y $(cat packages.txt)`
  bool by_substitution(std::size_t i) {
    ListWords words = commands_[i].words;
    for (std::size_t at = 0; at < words.size(); ++at) {
      const std::string word = words[at];
      const bool old = word.size() > 2 && word.starts_with('`') && word.ends_with('`');
      if (!old && !(word.starts_with("$(") && word.ends_with(')'))) continue;
      const std::string inside =
          old ? word.substr(1, word.size() - 2) : word.substr(2, word.size() - 3);
      const std::vector<ShellCommand> commands = shell_commands(inside, {});
      if (commands.empty()) return false;
      const ShellCommand& first = commands.front();
      const std::string name = first.input.empty() ? file_among(first.words, file_) : first.input;
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(at));
      if (name.empty() || !put(words, at, name)) return false;
      commands_[i].words = std::move(words);
      return true;
    }
    return false;
  }

  /// The list's words into those of a command; pip reads its lists itself.
  bool put(ListWords& words, std::size_t at, const std::string& name) const {
    const std::optional<fs::path> path = file_(name);
    if (!path) return false;
    ListWords all = words_of_list(decoded_text(read_small_file(*path, size_limit::kConverted)));
    for (const std::string& word : words) {
      if (word == "pip" || word == "pip3") all = {"-r", name};
    }
    words.insert(words.begin() + static_cast<std::ptrdiff_t>(at), all.begin(), all.end());
    return true;
  }

  std::vector<ShellCommand> commands_;
  const FindFile& file_;
  std::vector<ShellCommand> out_;
};

}  // namespace

std::vector<std::string> words_of_list(std::string_view text) {
  std::vector<std::string> words;
  for (const std::string_view line : split(text, '\n')) {
    std::string_view one = trim(line.substr(0, line.find('#')));
    while (!one.empty()) {
      const std::size_t end = std::min(one.find_first_of(" \t"), one.size());
      words.emplace_back(one.substr(0, end));
      one = trim(one.substr(end));
    }
  }
  return words;
}

std::vector<ShellCommand> with_listed_words(std::vector<ShellCommand> commands,
                                            const FindFile& file) {
  return Lists(std::move(commands), file).replaced();
}

}  // namespace mlenv
