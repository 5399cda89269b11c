#include "recipes/resolve/apt_sources.hpp"

#include <algorithm>
#include <optional>

#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "base/text.hpp"
#include "recipes/resolve/debian_control.hpp"

namespace mlenv {
namespace {

std::vector<std::string> items(std::string_view text) {
  std::vector<std::string> found;
  for (const std::string_view one : split(text, ',')) {
    if (!one.empty()) found.emplace_back(one);
  }
  return found;
}

bool is_fetchable(std::string_view uri) {
  return uri.starts_with("http://") || uri.starts_with("https://");
}

/// apt's words for no; anything else stays yes.
bool says_no(std::string_view text) {
  constexpr std::string_view kNoWords[] = {"no", "false", "without", "off", "disable", "0"};
  return std::any_of(std::begin(kNoWords), std::end(kNoWords),
                     [&](std::string_view word) { return equal_ignoring_case(word, text); });
}

/// Removes the leading ` ` of continuation lines and the ` .` that stands for an empty one.
std::string unfold(std::string_view value) {
  std::string text;
  for (std::string_view rest = value; !rest.empty();) {
    const std::size_t end = rest.find('\n');
    std::string_view line = trim(rest.substr(0, end));
    if (line != ".") text.append(line);
    text.push_back('\n');
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return text;
}

void set_signed_by(AptSource& source, std::string_view value) {
  if (value.find("-----BEGIN PGP") != std::string_view::npos) {
    source.key = unfold(value);
  } else if (value.starts_with('/')) {
    source.signed_by = std::string(value);
  }
}

/// `[arch=amd64 signed-by=/…]`; apt's `+=` and `-=` forms do not narrow what we take.
void set_option(AptSource& source, std::string_view option) {
  const std::size_t equals = option.find('=');
  if (equals == std::string_view::npos) return;
  const std::string_view name = option.substr(0, equals);
  const std::string_view value = option.substr(equals + 1);
  if (equal_ignoring_case(name, "arch")) {
    source.architectures = items(value);
  } else if (equal_ignoring_case(name, "signed-by")) {
    set_signed_by(source, value);
  } else if (equal_ignoring_case(name, "check-valid-until")) {
    source.check_valid_until = !says_no(value);
  }
}

std::optional<AptSource> parse_line(std::string_view line, const fs::path& file) {
  line = trim(line.substr(0, line.find('#')));
  if (!line.starts_with("deb") || line.size() < 4 || (line[3] != ' ' && line[3] != '\t')) {
    return std::nullopt;
  }
  line = trim(line.substr(3));
  AptSource source;
  source.file = file;
  if (line.starts_with('[')) {
    const std::size_t end = line.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    each_word(line.substr(1, end - 1), [&](std::string_view word) { set_option(source, word); });
    line = trim(line.substr(end + 1));
  }
  std::vector<std::string> rest = word_list(line);
  if (rest.size() < 2 || !is_fetchable(rest[0])) return std::nullopt;
  source.uris = {rest[0]};
  source.suite = rest[1];
  source.components.assign(rest.begin() + 2, rest.end());
  return source;
}

bool names_deb(std::string_view types) {
  bool found = false;
  each_word(types, [&](std::string_view word) { found = found || word == "deb"; });
  return found;
}

void parse_stanza(const ControlStanza& stanza, const fs::path& file, std::vector<AptSource>& out) {
  AptSource source;
  source.file = file;
  std::vector<std::string> suites;
  bool enabled = true;
  bool deb = false;
  stanza.each([&](std::string_view name, std::string_view value) {
    const auto is = [&](std::string_view key) { return equal_ignoring_case(name, key); };
    if (is("Types")) deb = names_deb(value);
    if (is("Enabled")) enabled = !says_no(value);
    if (is("URIs")) source.uris = word_list(value);
    if (is("Suites")) suites = word_list(value);
    if (is("Components")) source.components = word_list(value);
    if (is("Architectures")) source.architectures = word_list(value);
    if (is("Signed-By")) set_signed_by(source, value);
    if (is("Check-Valid-Until")) source.check_valid_until = !says_no(value);
  });
  std::erase_if(source.uris, [](const std::string& uri) { return !is_fetchable(uri); });
  if (!deb || !enabled || source.uris.empty()) return;
  for (const std::string& suite : suites) {
    source.suite = suite;
    out.push_back(source);
  }
}

/// Comment lines may stand anywhere in a stanza, between a field's continuation lines too.
std::string without_comments(std::string_view text) {
  std::string kept;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (!line.starts_with('#')) kept.append(line).push_back('\n');
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return kept;
}

bool is_deb822(std::string_view text) {
  bool found = false;
  each_stanza(text, [&](const ControlStanza& stanza) {
    found = found || (!stanza.field("Types").empty() && !stanza.field("URIs").empty());
  });
  return found;
}

}  // namespace

std::vector<AptSource> parse_apt_sources(std::string_view text, const fs::path& shown_path) {
  std::vector<AptSource> found;
  const std::string clean = without_comments(text);
  if (is_deb822(clean)) {
    each_stanza(clean,
                [&](const ControlStanza& stanza) { parse_stanza(stanza, shown_path, found); });
    return found;
  }
  for (const std::string_view line : split(clean, '\n')) {
    if (auto source = parse_line(line, shown_path)) found.push_back(std::move(*source));
  }
  return found;
}

std::vector<AptSource> read_apt_sources(const fs::path& root) {
  std::vector<fs::path> files{root / "etc/apt/sources.list"};
  std::error_code absent;
  const fs::path folder = root / "etc/apt/sources.list.d";
  for (fs::directory_iterator entry{folder, absent}; entry != fs::directory_iterator{};
       entry.increment(absent)) {
    const std::string extension = entry->path().extension().string();
    if (extension == ".list" || extension == ".sources") files.push_back(entry->path());
  }
  std::sort(files.begin() + 1, files.end());
  std::vector<AptSource> found;
  for (const fs::path& file : files) {
    const auto text = read_small_file_if_exists(file, size_limit::kMachineConfig);
    if (!text) continue;
    auto sources = parse_apt_sources(*text, file);
    std::move(sources.begin(), sources.end(), std::back_inserter(found));
  }
  return found;
}

}  // namespace mlenv
