#include "recipes/apt_words.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "recipes/foreign_packages.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// Words with which a sentence goes on, all of which a package could be called.
constexpr std::array<std::string_view, 31> kSentence = {
    "and",     "or",      "on",    "in",    "if",     "for",    "to",      "then",
    "first",   "before",  "after", "from",  "with",   "using",  "package", "packages",
    "command", "the",     "a",     "is",    "as",     "by",     "via",     "when",
    "which",   "instead", "again", "under", "should", "please", "your"};

struct RenamedPackage {
  std::string_view old;
  std::string_view today;
};
/// Of Python 2, and those that a Debian of today calls otherwise.
constexpr std::array<RenamedPackage, 6> kRenamed = {
    {{"python-dev", "python3-dev"},
     {"python2-dev", "python3-dev"},
     {"python-tk", "python3-tk"},
     {"libmysqlclient-dev", "default-libmysqlclient-dev"},
     {"libatlas-dev", "libatlas-base-dev"},
     {"libav-tools", "ffmpeg"}}};

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '-' || c == '.' ||
         c == '_' || c == ':';
}

/// `python3.9-dev` is the image's own Python's.
std::string name_today(std::string_view name) {
  for (const RenamedPackage& one : kRenamed) {
    if (one.old == name) return std::string(one.today);
  }
  if (name.starts_with("python3.") && name.ends_with("-dev")) return "python3-dev";
  return std::string(name.substr(0, name.find(':')));
}

/// Reads the words behind `install`.
class PackageWords {
 public:
  explicit PackageWords(std::string_view rest) : rest_(rest) {}

  std::vector<std::string> read() {
    std::vector<std::string> names;
    while (auto word = next()) {
      if (word->starts_with('-')) continue;
      if (is_among(kSentence, *word)) break;
      const std::string name = name_today(*word);
      if (!is_debian_name(name) || is_digit(name.front())) break;
      if (why_foreign_package(name).empty() &&
          std::find(names.begin(), names.end(), name) == names.end()) {
        names.push_back(name);
      }
      if (ended_) break;
    }
    return names;
  }

 private:
  /// A word of letters that names have; nullopt: something else stands here.
  std::optional<std::string_view> next() {
    if (ended_) return std::nullopt;
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t"), rest_.size()));
    // A command that goes on in the next line.
    while (rest_.starts_with("\\\n")) {
      rest_.remove_prefix(2);
      rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t"), rest_.size()));
    }
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), is_name_character);
    std::string_view word(rest_.data(), static_cast<std::size_t>(end - rest_.begin()));
    rest_.remove_prefix(word.size());
    if (rest_.starts_with('<') || rest_.starts_with('=')) return std::nullopt;
    ended_ = !rest_.empty() && rest_.front() != ' ' && rest_.front() != '\t' &&
             !rest_.starts_with("\\\n");
    while (word.ends_with('.') || word.ends_with(':')) {
      word.remove_suffix(1);
      ended_ = true;
    }
    if (word.empty()) return std::nullopt;
    return word;
  }

  std::string_view rest_;
  bool ended_ = false;
};

bool begins_word(std::string_view text, std::size_t at) {
  return at == 0 || !is_name_character(text[at - 1]);
}

/// What stands behind `apt-get -y install`; empty: the program is called otherwise.
std::string_view behind_install(std::string_view text) {
  constexpr std::string_view kInstall = "install";
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    if (text.starts_with(kInstall)) {
      text.remove_prefix(kInstall.size());
      return text.starts_with(' ') || text.starts_with('\t') ? text : std::string_view{};
    }
    if (!text.starts_with('-')) return {};
    text.remove_prefix(std::min(text.find_first_of(" \t\n"), text.size()));
  }
}

}  // namespace

std::vector<std::string> packages_of_apt_words(std::string_view text) {
  constexpr std::array<std::string_view, 3> kPrograms = {"apt-get ", "apt ", "aptitude "};
  std::size_t last = 0;
  std::vector<std::string> found;
  for (const std::string_view program : kPrograms) {
    for (std::size_t at = text.find(program); at != std::string_view::npos;
         at = text.find(program, at + 1)) {
      if (!begins_word(text, at) || at < last) continue;
      std::vector<std::string> names =
          PackageWords(behind_install(text.substr(at + program.size()))).read();
      if (names.empty()) continue;
      found = std::move(names);
      last = at;
    }
  }
  return found;
}

}  // namespace mlenv
