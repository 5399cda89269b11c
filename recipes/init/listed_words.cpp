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

/// `cat list.txt`: nothing of the file is changed.
bool is_plain_cat(const ListWords& words) {
  return words.size() == 2 && words.front() == "cat" && !words.back().starts_with('-');
}

/// `tr '\n' ' '`: words stay the same.
bool joins_lines(const ListWords& words) {
  constexpr std::array<std::string_view, 4> kEnds = {"\\n", "\n", "\\r", "\r"};
  if (words.empty() || (words.front() != "tr" && words.front() != "paste")) return false;
  return words.front() == "paste" ||
         std::any_of(words.begin(), words.end(), [&](const std::string& one) {
           return is_among(kEnds, one) || one == "\\r\\n";
         });
}

/// `xargs -a FILE -n 1 pip install`: what it starts, and what it reads.
struct Xargs {
  std::size_t starts = 0;  ///< where the words of the other program begin
  std::string file{};
  std::string place{};  ///< `{}` of `-I {}`, where they go
};
Xargs xargs_of(const ListWords& words, std::size_t at) {
  constexpr std::array<std::string_view, 6> kValues = {"-n", "-L", "-P", "-d", "-s", "-E"};
  Xargs found;
  for (++at; at < words.size() && words[at].starts_with('-'); ++at) {
    const std::string& word = words[at];
    constexpr std::string_view kArgFile = "--arg-file=";
    if (word.starts_with(kArgFile)) found.file = word.substr(kArgFile.size());
    if (word == "-a" && at + 1 < words.size()) {
      found.file = words[++at];
    } else if (word == "-I" && at + 1 < words.size()) {
      found.place = words[++at];
    } else if (word.starts_with("-I")) {
      found.place = word.substr(2);
    } else if (is_among(kValues, word)) {
      ++at;
    }
  }
  found.starts = at;
  return found;
}

class Lists {
 public:
  Lists(std::vector<ShellCommand> commands, const FindFile& file, const PipedLists& piped)
      : commands_(std::move(commands)), file_(file), piped_(piped) {}

  std::vector<ShellCommand> replaced() {
    for (std::size_t i = 0; i < commands_.size(); ++i) {
      if (!commands_[i].inside.empty()) {
        out_.push_back(std::move(commands_[i]));
        continue;
      }
      const std::size_t at = prefix_length(commands_[i].words);
      const bool xargs = at < commands_[i].words.size() && commands_[i].words[at] == "xargs";
      if (xargs ? by_xargs(i, at) : take_process(commands_[i].words) || by_substitution(i)) {
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
    std::optional<PipedList> list;
    if (found.file.empty() && !one.alone) list = piped_before(readers);
    while (!list && found.file.empty() && readers < out_.size() && !one.alone) {
      const ShellCommand& before = out_[out_.size() - ++readers];
      if (before.alone) return false;
      found.file = before.input.empty() ? file_among(before.words, file_) : before.input;
    }
    const auto begin = one.words.begin();
    ListWords words(begin, begin + static_cast<std::ptrdiff_t>(at));
    words.insert(words.end(), begin + static_cast<std::ptrdiff_t>(found.starts), one.words.end());
    std::erase_if(words, [&](const std::string& word) {
      return !found.place.empty() && word == found.place;
    });
    if (list) {
      put(words, words.size(), *list);
    } else {
      if (found.file.empty() || !put(words, words.size(), found.file)) return false;
      if (readers > 0)
        tell_unknown({out_.end() - static_cast<std::ptrdiff_t>(readers), out_.end()});
    }
    one.words = std::move(words);
    one.alone = true;
    out_.resize(out_.size() - readers);
    return true;
  }

  /// `a | b` of commands of one pipe, without those at its end that only join lines.
  static std::string pipe_of(const std::vector<ShellCommand>& commands) {
    std::string text;
    bool ended = false;
    for (auto one = commands.rbegin(); one != commands.rend(); ++one) {
      ended = ended || !joins_lines(one->words);
      if (ended) text = one->text + (text.empty() ? "" : " | " + text);
    }
    return text;
  }

  /// What a pipe writes that changes lists; nullopt also where it is a file as it is.
  std::optional<PipedList> list_of(const std::vector<ShellCommand>& commands) const {
    const std::string text = pipe_of(commands);
    const bool whole =
        !commands.empty() && is_plain_cat(commands.front().words) && text == commands.front().text;
    const bool file = !commands.empty() && commands.front().words.empty();  // `$(< list.txt)`
    return !piped_.of || text.empty() || whole || file ? std::nullopt : piped_.of(text);
  }

  /// Of the commands before one that reads their pipe: the fewest whose output is known.
  std::optional<PipedList> piped_before(std::size_t& readers) const {
    for (std::size_t count = 1; count <= out_.size(); ++count) {
      if (out_[out_.size() - count].alone) break;
      const std::vector<ShellCommand> before(out_.end() - static_cast<std::ptrdiff_t>(count),
                                             out_.end());
      std::optional<PipedList> list = list_of(before);
      if (!list) continue;
      readers = count;
      return list;
    }
    return std::nullopt;
  }

  /// A file that is read whole, though commands may leave out some of it.
  void tell_unknown(const std::vector<ShellCommand>& commands) const {
    const bool plain = std::all_of(commands.begin(), commands.end(), [](const auto& one) {
      return one.words.empty() || one.words.front() == "cat" || joins_lines(one.words);
    });
    if (!plain && piped_.tell_unknown) piped_.tell_unknown(pipe_of(commands));
  }

  /// `pip install -r <(cat a.txt b.txt)` as `-r a.txt -r b.txt`; false: there is none such.
  bool take_process(ListWords& words) const {
    for (std::size_t at = 1; at < words.size(); ++at) {
      if (!words[at].starts_with("<(") || !words[at].ends_with(')') || words[at - 1] != "-r")
        continue;
      const std::vector<ShellCommand> inside =
          shell_commands(std::string_view(words[at]).substr(2, words[at].size() - 3), {});
      ListWords lists;
      if (inside.empty() || inside.front().words.empty()) return false;
      const bool cat = inside.size() == 1 && inside.front().words.front() == "cat";
      const std::optional<PipedList> list = cat ? std::nullopt : list_of(inside);
      if (list) lists = {"-r", list->name};
      for (const std::string& word : inside.front().words) {
        if (!list && file_(word)) lists.insert(lists.end(), {"-r", word});
      }
      if (lists.empty()) return false;
      if (!list) tell_unknown(inside);
      const auto begin = words.begin() + static_cast<std::ptrdiff_t>(at - 1);
      words.insert(words.erase(begin, begin + 2), lists.begin(), lists.end());
      return true;
    }
    return false;
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
      if (const std::optional<PipedList> list = list_of(commands)) {
        put(words, at, *list);
      } else {
        if (name.empty() || !put(words, at, name)) return false;
        tell_unknown(commands);
      }
      commands_[i].words = std::move(words);
      return true;
    }
    return false;
  }

  static bool is_pips(const ListWords& words) {
    return std::any_of(words.begin(), words.end(),
                       [](const std::string& word) { return word == "pip" || word == "pip3"; });
  }

  static void put(ListWords& words, std::size_t at, const PipedList& list) {
    ListWords all = words_of_list(list.text);
    if (list.of_file && is_pips(words)) all = {"-r", list.name};
    words.insert(words.begin() + static_cast<std::ptrdiff_t>(at), all.begin(), all.end());
  }

  /// The list's words into those of a command; pip reads its lists itself.
  bool put(ListWords& words, std::size_t at, const std::string& name) const {
    const std::optional<fs::path> path = file_(name);
    if (!path) return false;
    ListWords all = words_of_list(decoded_text(read_small_file(*path, size_limit::kConverted)));
    if (is_pips(words)) all = {"-r", name};
    words.insert(words.begin() + static_cast<std::ptrdiff_t>(at), all.begin(), all.end());
    return true;
  }

  std::vector<ShellCommand> commands_;
  const FindFile& file_;
  const PipedLists& piped_;
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
                                            const FindFile& file, const PipedLists& piped) {
  return Lists(std::move(commands), file, piped).replaced();
}

}  // namespace mlenv
