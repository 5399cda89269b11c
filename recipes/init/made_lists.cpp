#include "recipes/init/made_lists.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/core.h>

#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "base/utf8.hpp"
#include "recipes/init/dockerfile.hpp"
#include "recipes/init/shell_words.hpp"
#include "recipes/init/step_words.hpp"
#include "recipes/init/text_filters.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

std::string list_path(std::string_view name, const std::string& folder) {
  return (fs::path(folder.empty() ? "/" : folder) / name).lexically_normal().string();
}

/// A list of packages, by its name: other files of a build are not looked into.
bool is_list_name(std::string_view path) {
  const std::string name = to_lower(path.substr(path.rfind('/') + 1));
  if (name.ends_with(".yml") || name.ends_with(".yaml")) {
    return name.starts_with("env") || name.starts_with("conda");
  }
  constexpr std::array<std::string_view, 5> kWords = {"req", "constraint", "depend", "package",
                                                      "deps"};
  return (name.ends_with(".txt") || name.ends_with(".in")) &&
         std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return says(name, word); });
}

/// `-r needs.txt`, `--file=env/lab.yml`
bool names_as_list(std::string_view text, std::string_view file) {
  // `rm -f needs.txt` names none.
  constexpr std::array<std::string_view, 4> kOptions = {"-r", "--requirement", "--file", "-f"};
  const std::size_t count = file.ends_with("ml") ? kOptions.size() : kOptions.size() - 1;
  for (std::size_t at = text.find(file); at != std::string_view::npos;
       at = text.find(file, at + 1)) {
    const std::size_t blank = text.find_last_of(" \t\n=", at);
    std::string_view before = text.substr(0, blank == std::string_view::npos ? 0 : blank);
    while (before.ends_with(' ') || before.ends_with('\t')) before.remove_suffix(1);
    const auto ends = [&](std::string_view option) { return before.ends_with(option); };
    if (std::any_of(kOptions.begin(), kOptions.begin() + static_cast<std::ptrdiff_t>(count), ends))
      return true;
  }
  return false;
}

bool is_list(std::string_view path, const MadeLists::Place& place) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  if (file.empty()) return false;
  return is_list_name(path) || names_as_list(place.script, file) ||
         names_as_list(place.build, file);
}

/// `COMMANDS > NAME`
struct Redirected {
  std::string_view commands;
  std::string name;
  bool adds = false;
};
std::optional<Redirected> redirected_output(std::string_view text, const DockerVariables& known) {
  const std::size_t at = find_unquoted(text, 0, [](char c) { return c == '>'; });
  if (at == std::string_view::npos || (at > 0 && is_digit(text[at - 1]))) return std::nullopt;
  const bool adds = text.substr(at).starts_with(">>");
  const auto behind = shell_commands(text.substr(at + (adds ? 2 : 1)), known);
  const bool plain = behind.size() == 1 && behind.front().simple && behind.front().alone &&
                     behind.front().words.size() == 1 && behind.front().input.empty();
  if (!plain) return std::nullopt;
  return Redirected{trim(text.substr(0, at)), behind.front().words.front(), adds};
}

/// What `echo` and `printf` write, as the shell of images has them.
std::optional<std::string> written_words(const std::vector<std::string>& words) {
  if (words.size() < 2 || (words.front() != "echo" && words.front() != "printf")) {
    return std::nullopt;
  }
  const bool echo = words.front() == "echo";
  std::string text;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (echo && (word == "-e" || word == "-n")) continue;
    if (!echo && word.find('%') != std::string::npos) return std::nullopt;
    if (!text.empty()) text += ' ';
    text += word;
  }
  for (std::size_t at = text.find("\\n"); at != std::string::npos; at = text.find("\\n", at)) {
    text.replace(at, 2, "\n");
  }
  return text.ends_with('\n') ? text : text + '\n';
}

}  // namespace

MadeList* MadeLists::find(const std::string& path) {
  const auto found =
      std::find_if(all_.begin(), all_.end(), [&](const MadeList& one) { return one.path == path; });
  return found == all_.end() ? nullptr : &*found;
}

const MadeList* MadeLists::read(std::string_view name, const std::string& folder) {
  MadeList* list = find(list_path(name, folder));
  if (list != nullptr) list->used = true;
  return list;
}

void MadeLists::put(MadeList list) {
  if (MadeList* known = find(list.path); known != nullptr) {
    *known = std::move(list);
  } else {
    all_.push_back(std::move(list));
  }
}

bool MadeLists::take(const ShellCommand& one, const Place& place) {
  constexpr std::size_t kMostLists = 100;
  if (all_.size() > kMostLists) return false;
  if (says(one.text, ">") && writes(one, place)) return true;
  if (!one.alone || !one.simple || !one.inside.empty()) return false;
  const std::vector<std::string> words = program_words(one);
  if (words.size() < 2) return false;
  if (words.front() == "sed") return edits(words, one, place);
  return moves(words, place) || removes(words, place);
}

namespace {

/// A text that a command reads, and the file here that it comes from.
struct ListText {
  std::string text;
  fs::path source;
};

std::optional<ListText> text_of_list(const MadeList* made, std::string_view name,
                                     const MadeLists::Place& place) {
  if (made != nullptr) return ListText{made->text, made->source};
  const std::optional<fs::path> path = place.file(name);
  std::error_code unknown;
  if (!path || !place.to.holds(fs::weakly_canonical(*path, unknown))) return std::nullopt;
  std::string text = decoded_text(read_small_file(*path, size_limit::kConverted));
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  return ListText{std::move(text), *path};
}

/// What `one` writes when `before` comes into it by a pipe; nullopt: that is not known. `read` has
/// the text of a list by its name.
template <class Read>
std::optional<ListText> piped(const std::optional<ListText>& before, const ShellCommand& one,
                              const Read& read) {
  if (!one.simple || one.control || !one.group.empty()) return std::nullopt;
  const std::vector<std::string> words = program_words(one);
  if (!before) {
    if (std::optional<std::string> written = written_words(words)) {
      return ListText{*std::move(written), {}};
    }
  }
  auto filter = text_filter(words);
  if (!filter || filter->in_place) return std::nullopt;
  if (!before && !one.input.empty()) filter->files.push_back(one.input);
  if (before.has_value() == !filter->files.empty()) return std::nullopt;
  ListText text = before.value_or(ListText{});
  for (const std::string& name : filter->files) {
    const std::optional<ListText> more = read(name);
    if (!more) return std::nullopt;
    text.text += more->text;
    if (text.source.empty()) text.source = more->source;
  }
  std::optional<std::string> result = filtered(*filter, text.text);
  if (!result) return std::nullopt;
  text.text = *std::move(result);
  return text;
}

}  // namespace

std::optional<MadeList> MadeLists::made_by(std::string_view commands, const Place& place,
                                           MadeLists& lists) {
  std::vector<MadeList*> used;
  const auto read = [&](const std::string& name) {
    MadeList* made = lists.find(list_path(name, place.folder));
    if (made != nullptr) used.push_back(made);
    return text_of_list(made, name, place);
  };
  std::optional<ListText> text;
  for (const ShellCommand& each : shell_commands(commands, place.known)) {
    text = piped(text, each, read);
    if (!text) return std::nullopt;
  }
  if (!text) return std::nullopt;
  for (MadeList* one : used) one->used = true;
  return MadeList{{}, text->source, text->text, std::string(commands), place.source};
}

std::optional<PipedList> MadeLists::pipe(std::string_view commands, const Place& place) {
  constexpr std::size_t kMostLists = 100;
  if (all_.size() > kMostLists) return std::nullopt;
  std::optional<MadeList> made = made_by(commands, place, *this);
  if (!made) return std::nullopt;
  made->path = list_path(fmt::format("/dev/fd/{}", commands), "/");
  made->used = true;
  PipedList list{made->path, made->text, !made->source.empty()};
  put(*std::move(made));
  return list;
}

/// `grep -v x a.txt | sort > b.txt`
bool MadeLists::writes(const ShellCommand& one, const Place& place) {
  const auto output = redirected_output(one.text, place.known);
  if (!output || !is_list(output->name, place)) return false;
  std::optional<MadeList> text = made_by(output->commands, place, *this);
  if (!text) return false;
  const std::string path = list_path(output->name, place.folder);
  if (output->adds) {
    if (const auto before = text_of_list(find(path), output->name, place)) {
      text->text = before->text + text->text;
      text->source = before->source;
    }
  }
  put({path, text->source, text->text, one.text, place.source});
  return true;
}

/// `sed -i /x/d a.txt`
bool MadeLists::edits(const std::vector<std::string>& words, const ShellCommand& one,
                      const Place& place) {
  const auto filter = text_filter(words);
  if (!filter || !filter->in_place || filter->files.empty()) return false;
  std::vector<MadeList> made;
  for (const std::string& name : filter->files) {
    const std::string path = list_path(name, place.folder);
    const auto before = text_of_list(find(path), name, place);
    const auto text =
        before && is_list(name, place) ? filtered(*filter, before->text) : std::nullopt;
    if (!text) return false;
    made.push_back({path, before->source, *text, one.text, place.source});
  }
  for (MadeList& list : made) put(std::move(list));
  return true;
}

/// `mv a.txt b.txt` of such lists.
bool MadeLists::moves(const std::vector<std::string>& words, const Place& place) {
  if (words.size() != 3 || (words.front() != "mv" && words.front() != "cp")) return false;
  MadeList* list = find(list_path(words[1], place.folder));
  if (list == nullptr) return false;
  MadeList moved = *list;
  list->used = true;
  std::string target = words[2];
  if (target.ends_with('/') || target == ".")
    target += '/' + fs::path(words[1]).filename().string();
  moved.used = false;
  moved.path = list_path(target, place.folder);
  if (words.front() == "mv") {
    std::erase_if(all_, [&](const MadeList& one) { return &one == list; });
  }
  put(std::move(moved));
  return true;
}

bool MadeLists::removes(const std::vector<std::string>& words, const Place& place) {
  if (words.front() != "rm") return false;
  return std::all_of(words.begin() + 1, words.end(), [&](const std::string& word) {
    return word.starts_with('-') || find(list_path(word, place.folder)) != nullptr;
  });
}

void MadeLists::tell_unused(Conversion& to) const {
  for (const MadeList& one : all_) {
    if (!one.used) {
      to.leave_out(one.place, one.command,
                   "it makes a list that no command here installs: as a step of `run` it comes "
                   "after what is installed");
    }
  }
}

}  // namespace mlenv
