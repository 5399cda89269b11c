// What uv says when it fails, in our words. uv's own sentences are kept where they explain a
// conflict; addresses of indexes are not, since a lock and its making do not depend on hosts.
#include <algorithm>
#include <array>
#include <optional>
#include <regex>

#include "base/http.hpp"
#include "recipes/logins.hpp"
#include "recipes/resolve/uv.hpp"
#include "recipes/resolve/uv_steering.hpp"
#include "recipes/resolve/wheel_conflict.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kSo = ", so ";
constexpr std::size_t kLongestFact = 300;

/// Expressions take the stack for what they match, and an index or a package may say anything:
/// longer words are cut, and of a longer account its begin and end are kept.
std::string bounded(const std::string& text) {
  constexpr std::size_t kLongestWord = 1000;
  constexpr std::size_t kMost = 8000;
  std::string out;
  std::size_t word = 0;
  for (const char c : text) {
    word = c == ' ' ? 0 : word + 1;
    if (word <= kLongestWord) out += c;
  }
  if (out.size() <= 2 * kMost) return out;
  // Between words: half an address would no longer be seen to hold a login.
  const std::size_t first = out.rfind(' ', kMost);
  const std::size_t last = out.find(' ', out.size() - kMost);
  return out.substr(0, first) + " …" + out.substr(last);
}

/// One line; box-drawing marks of older releases and runs of blanks are gone.
std::string flattened(std::string_view said) {
  std::string text;
  for (std::size_t i = 0; i < said.size(); ++i) {
    const auto byte = static_cast<unsigned char>(said[i]);
    if (byte == 0xE2 && i + 2 < said.size()) {  // U+2000–U+2FFF: ╰─▶, × is U+00D7
      i += 2;
    } else if (byte == 0xC3 && i + 1 < said.size()) {
      i += 1;
    } else if (byte > 0x20 && byte < 0x7F) {
      text += said[i];
      continue;
    }
    if (!text.empty() && text.back() != ' ') text += ' ';
  }
  return bounded(without_logins(text));
}

std::string without_addresses(std::string_view text) {
  std::string out;
  for (TextSpan address = find_address(text); address.size > 0; address = find_address(text)) {
    out += text.substr(0, address.start);
    out += "the index";
    text.remove_prefix(address.start + address.size);
  }
  return out.append(text);
}

/// `Because A, we can conclude that B` becomes `A, so B`; that nothing fits is said already.
std::string plain(std::string fact) {
  std::size_t start = 0;
  if (fact.starts_with('(')) start = std::min(fact.find(')'), fact.size() - 2) + 2;
  for (const std::string_view opening : {"Because ", "And because ", "Thus, ", "And ", "Now "}) {
    if (std::string_view(fact).substr(std::min(start, fact.size())).starts_with(opening)) {
      fact.erase(start, opening.size());
      break;
    }
  }
  constexpr std::string_view kNothing =
      ", we can conclude that your requirements are unsatisfiable";
  constexpr std::string_view kConcluded = ", we can conclude that ";
  if (fact.ends_with(kNothing)) fact.erase(fact.size() - kNothing.size());
  const std::size_t at = fact.find(kConcluded);
  if (at != std::string::npos) fact.replace(at, kConcluded.size(), kSo);
  return fact;
}

/// The end of uv's derivation, a sentence a fact.
std::vector<std::string> sentences(std::string_view text) {
  const std::size_t start = text.find("Because ");
  if (start == std::string_view::npos) return {};
  text = text.substr(start);
  text = text.substr(0, text.find("hint:"));
  std::vector<std::string> facts;
  while (!text.empty()) {
    std::size_t end = text.size();
    for (const std::string_view next : {". And ", ". Because ", ". (", ". Now ", ". Thus, "}) {
      end = std::min(end, text.find(next));
    }
    // Behind a list of versions there is no full stop.
    end = std::min(end, text.find(" And because ", 1));
    std::string fact(trim(text.substr(0, end)));
    while (fact.ends_with('.')) fact.pop_back();
    fact = plain(std::move(fact));
    facts.push_back(without_addresses(fact));
    text = end >= text.size() ? std::string_view{} : text.substr(end + (text[end] == '.' ? 2 : 1));
  }
  // What clashes is what the last but one comes to, and the last: how it came to that is a tale.
  if (facts.size() > 2) {
    std::string& before_last = facts[facts.size() - 2];
    const std::size_t so = before_last.rfind(kSo);
    if (so != std::string::npos) before_last.erase(0, so + kSo.size());
    facts.erase(facts.begin(), facts.end() - 2);
  }
  for (std::string& fact : facts) {
    if (fact.size() > kLongestFact) fact = fact.substr(0, kLongestFact) + " …";
  }
  return facts;
}

Conflict conflict_from(const std::string& text) {
  Conflict conflict;
  conflict.facts = sentences(text);
  conflict.told = text;
  std::smatch found;
  static const std::regex absent("([A-Za-z0-9._-]+) was not found in the");
  if (std::regex_search(text, found, absent)) {
    conflict.absent = normalise_wheel_name(found[1].str());
    conflict.headline = fmt::format("the Python indexes have no package `{}`", found[1].str());
    conflict.hint = hint_of_absent({found[1].str()});
    return conflict;
  }
  conflict.headline = "no set of wheels satisfies the recipe";
  if (says(text, "has no usable wheels") || says(text, "no wheels with a matching")) {
    conflict.hint = "mlenv installs wheels only: choose a version that has one for this Python";
  } else if (says(text, "authentication") || says(text, "401") || says(text, "403")) {
    conflict.hint = "log in to the index with `uv auth login`, or in `~/.netrc`";
  } else if (says(text, "non-PEP 625-compliant")) {
    static const std::regex old("([A-Za-z0-9._-]+)==([^ ]+) has a non-PEP 625-compliant");
    conflict.hint =
        std::regex_search(text, found, old)
            ? fmt::format(
                  "uv takes `.tar.gz` and `.zip` from an index alone: name the file by its "
                  "address, as in `{0} @ https://…/{0}-{1}.tar.bz2`",
                  found[1].str(), found[2].str())
            : "uv takes `.tar.gz` and `.zip` from an index alone: name the file by its address";
  } else {
    conflict.hint = "loosen one of the versions named above";
  }
  return conflict;
}

/// A package of an index names another by its address, which uv takes of what the recipe names
/// alone.
std::optional<Conflict> late_address(const std::string& text) {
  static const std::regex late(
      "Failed to resolve dependencies for (?:package )?`([A-Za-z0-9._-]+).*Package "
      "`([A-Za-z0-9._-]+)` was included as a URL dependency.*Consider adding `([^`]+)`");
  std::smatch found;
  if (!std::regex_search(text, found, late)) return std::nullopt;
  Conflict conflict;
  conflict.told = text;
  conflict.headline =
      fmt::format("`{}` asks for `{}` at an address of its own, which counts in a recipe alone",
                  found[1].str(), found[2].str());
  // Not as uv says it: it puts this machine's variables in.
  conflict.hint = fmt::format(
      "if that is trusted, add `{} @ ADDRESS` to `packages`, with the address that its metadata "
      "names",
      found[2].str());
  return conflict;
}

bool is_network(std::string_view text) {
  constexpr std::array<std::string_view, 9> kSigns = {"Failed to fetch",
                                                      "error sending request",
                                                      "Could not connect",
                                                      "Request failed after",
                                                      "Failed to download",
                                                      "connection refused",
                                                      "dns error",
                                                      "timed out",
                                                      "Network connectivity is disabled"};
  return std::any_of(kSigns.begin(), kSigns.end(),
                     [&](std::string_view sign) { return says(text, sign); });
}

/// Of a wheel that uv has, but cannot read.
bool is_bad_wheel(std::string_view text) {
  constexpr std::array<std::string_view, 7> kSigns = {
      "Failed to extract archive",     "Package metadata name",
      "Package metadata version",      "`RECORD` file",
      "Metadata field Name not found", "dist-info/RECORD`",
      "metadata for the wrong package"};
  return std::any_of(kSigns.begin(), kSigns.end(),
                     [&](std::string_view sign) { return says(text, sign); });
}

/// uv's lines as causes, addresses without what is nobody's business.
void add_lines(Error& error, std::string_view said) {
  while (!said.empty()) {
    const std::size_t end = said.find('\n');
    std::string line = flattened(said.substr(0, end));
    said = end == std::string_view::npos ? std::string_view{} : said.substr(end + 1);
    for (const std::string_view prefix : {"error: ", "cause: ", "Caused by: "}) {
      if (trim(line).starts_with(prefix)) line = std::string(trim(line)).substr(prefix.size());
    }
    line = std::string(trim(with_display_url(std::move(line))));
    const bool tells_more = !line.empty() && !line.starts_with("hint:");
    if (tells_more && error.frames().size() < 6) error.because(line);
  }
}

Error bad_wheel_error(std::string_view said) {
  Error error = failure("bad-wheel", "a wheel that an index offers cannot be read");
  add_lines(error, said);
  return std::move(error).hint("ask for another version, or tell whoever publishes it");
}

Error network_error(std::string_view said, bool own_indexes) {
  const std::string_view whose = own_indexes ? " of the recipe's `sources`" : "";
  const bool untrusted = says(said, "invalid peer certificate");
  Error error = untrusted ? failure("certificate", "a Python index{} is not trusted here", whose)
                          : failure("network", "a Python index{} cannot be reached", whose);
  add_lines(error, said);
  if (untrusted) {
    error.hint(std::string(kPrivateAuthorityHint));
    return error;
  }
  error.hint(own_indexes
                 ? "check the network and the addresses under `sources: {pypi: […]}` in the recipe"
                 : "check the network and the index settings of uv (`UV_DEFAULT_INDEX`, uv.toml; "
                   "uv does not read pip's)");
  return error;
}

}  // namespace

void mark_yanked(std::string_view said, std::vector<PylockPackage>& packages) {
  static const std::regex yanked(
      "warning: `([A-Za-z0-9._-]+)==([^`]+)` is yanked(?: \\(reason: \"?(.*)\\))?");
  constexpr std::size_t kLongestReason = 200;
  for (const std::string_view line : split(said, '\n')) {
    const std::string text = flattened(line);
    std::smatch found;
    if (!std::regex_search(text, found, yanked)) continue;
    const std::string name = normalise_wheel_name(found[1].str());
    std::string reason = found[3].str();
    while (reason.ends_with('"') || reason.ends_with('.')) reason.pop_back();
    if (reason.size() > kLongestReason) reason = reason.substr(0, kLongestReason) + " …";
    for (PylockPackage& one : packages) {
      if (one.name == name && one.version == found[2].str()) one.yanked = reason;
    }
  }
}

std::string without_uv_warnings(std::string_view said) {
  std::vector<std::string> kept;
  for (const std::string_view line : split(said, '\n')) {
    const bool told = line.starts_with("warning: ") || line.starts_with("Resolved ");
    if (!told) kept.emplace_back(line);
  }
  return join(kept, "\n");
}

std::variant<Conflict, NeedsBuild> explain_uv_failure(std::string_view said, bool own_indexes) {
  const std::string text = without_own_project(flattened(said));
  std::smatch found;
  static const std::regex build(
      "[Ff]ailed to (?:download and )?build `([A-Za-z0-9._-]+)==([^`]+)`");
  if (std::regex_search(text, found, build)) {
    return NeedsBuild{normalise_wheel_name(found[1].str()), found[2].str()};
  }
  if (auto late = late_address(text)) return *std::move(late);
  if (says(text, "No solution found") || says(text, "unsatisfiable")) return conflict_from(text);
  if (is_bad_wheel(text)) throw bad_wheel_error(said);
  if (is_network(text)) throw network_error(said, own_indexes);
  Error error = failure("uv-failed", "uv could not resolve the recipe's Python packages");
  error.because(without_logins(trim(text)).substr(0, 1000));
  throw std::move(error);
}

}  // namespace mlenv
