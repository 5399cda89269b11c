#include "recipes/init/conda_spec.hpp"

#include <algorithm>

#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kConditions = "=<>!~";

std::string without_conda_blanks(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (!is_blank(c)) out += c;
  }
  return out;
}

/// `https://host/channel/linux-64/name-1.2-build_0.conda`, and its kin.
std::optional<CondaSpec> spec_of_file(std::string_view text) {
  text = text.substr(0, text.find('#'));  // the digest
  std::string_view file = text.substr(text.rfind('/') + 1);
  for (const std::string_view ending : {".conda", ".tar.bz2"}) {
    if (!file.ends_with(ending)) continue;
    file.remove_suffix(ending.size());
    const std::size_t build = file.rfind('-');
    if (build == std::string_view::npos || build == 0) return std::nullopt;
    const std::size_t version = file.rfind('-', build - 1);
    if (version == std::string_view::npos) return std::nullopt;
    CondaSpec spec;
    spec.name = file.substr(0, version);
    spec.version = "==" + std::string(file.substr(version + 1, build - version - 1));
    spec.build = file.substr(build + 1);
    return spec;
  }
  return std::nullopt;
}

/// `version='>=1',build=x` of `name[…]`.
void read_brackets(std::string_view inner, CondaSpec& spec) {
  if (inner.find('=') == std::string_view::npos) {
    spec.extras = without_conda_blanks(inner);
    return;
  }
  while (!(inner = trim(inner)).empty()) {
    const std::size_t equal = std::min(inner.find('='), inner.size());
    const std::string_view key = trim(inner.substr(0, equal));
    inner = trim(inner.substr(std::min(equal + 1, inner.size())));
    const bool quoted = inner.starts_with('\'') || inner.starts_with('"');
    const std::size_t end =
        std::min(quoted ? inner.find(inner.front(), 1) : inner.find(','), inner.size());
    const std::string_view value = quoted ? inner.substr(1, end - 1) : inner.substr(0, end);
    if (key == "version") spec.version = without_conda_blanks(value);
    if (key == "build") spec.build = trim(value);
    if (key == "channel") spec.channel = trim(value);
    inner.remove_prefix(std::min(end + 1, inner.size()));
    if (quoted && trim(inner).starts_with(',')) inner = trim(inner).substr(1);
  }
}

bool is_pep440_number(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  const std::size_t plus = text.find('+');
  if (plus != std::string_view::npos) {
    const std::string_view local = text.substr(plus + 1);
    if (local.empty() || !std::all_of(local.begin(), local.end(),
                                      [](char c) { return is_alphanumeric(c) || c == '.'; })) {
      return false;
    }
    text = text.substr(0, plus);
  }
  const auto digits = [&] {
    const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
    text.remove_prefix(end);
    return end > 0;
  };
  if (!digits()) return false;
  if (text.starts_with('!')) {
    text.remove_prefix(1);
    if (!digits()) return false;
  }
  while (text.size() > 1 && text.front() == '.' && is_digit(text[1])) {
    text.remove_prefix(1);
    digits();
  }
  for (const std::string_view part : {"alpha", "beta", "rc", "a", "b", "post", "dev"}) {
    std::string_view rest = text;
    if (rest.starts_with('.') || rest.starts_with('_')) rest.remove_prefix(1);
    if (!rest.starts_with(part)) continue;
    text = rest.substr(part.size());
    digits();
  }
  return text.empty();
}

/// One of `>=1,<2`.
std::optional<std::string> pep440_part(std::string_view part, bool exact) {
  const std::size_t start = std::min(part.find_first_not_of(kConditions), part.size());
  std::string sign(part.substr(0, start));
  std::string number(part.substr(start));
  if (number == "*" && (sign.empty() || sign == "=" || sign == "==")) return "";
  const bool glob = number.ends_with('*');
  while (number.ends_with('*') || number.ends_with('.')) number.pop_back();
  if (!is_pep440_number(number)) return std::nullopt;
  const bool bound = sign.starts_with('<') || sign.starts_with('>') || sign == "~=";
  if (sign.empty()) sign = "==";
  if (sign == "=") {
    sign = "==";
    if (!exact) return sign + number + ".*";
  }
  if (sign == "~=" && number.find('.') == std::string::npos) sign = ">=";
  if (sign == "=>") sign = ">=";
  if (sign == "=<") sign = "<=";
  return sign + number + (glob && !bound ? ".*" : "");
}

}  // namespace

std::string CondaSpec::number() const {
  const std::string first = version.substr(0, version.find_first_of(",|"));
  std::string number = first.substr(std::min(first.find_first_not_of(kConditions), first.size()));
  while (number.ends_with('*') || number.ends_with('.')) number.pop_back();
  return number;
}

CondaSpec conda_spec(std::string_view text) {
  text = trim(text.substr(0, text.find(" #")));
  if (auto file = spec_of_file(text)) return *std::move(file);
  CondaSpec spec;
  const std::size_t channel = text.find("::");
  if (channel != std::string_view::npos) {
    spec.channel = text.substr(0, channel);
    text.remove_prefix(channel + 2);
  }
  const std::size_t bracket = text.find('[');
  const std::string_view inner =
      bracket == std::string_view::npos
          ? ""
          : text.substr(bracket + 1, std::min(text.find(']', bracket), text.size()) - bracket - 1);
  text = trim(text.substr(0, bracket));
  const std::size_t end = std::min(text.find_first_of(" =<>!~"), text.size());
  spec.name = to_lower(text.substr(0, end));
  std::string_view rest = trim(text.substr(end));
  // `name=1.2=build` and `name 1.2 build`; a list of conditions may have blanks in it.
  const std::size_t start =
      std::min(rest.find_first_not_of(std::string(kConditions) + " "), rest.size());
  std::size_t build = rest.find('=', start);
  if (rest.find(',') == std::string_view::npos && build == std::string_view::npos) {
    const std::size_t blank = rest.find(' ', start);
    const std::size_t next = std::min(rest.find_first_not_of(' ', blank), rest.size());
    if (blank != std::string_view::npos && next < rest.size() &&
        kConditions.find(rest[next]) == std::string_view::npos && rest[next] != '|') {
      build = blank;
    }
  }
  const bool second = build != std::string_view::npos && build > 0 &&
                      std::string_view("<>!~,|").find(rest[build - 1]) != std::string_view::npos;
  if (build != std::string_view::npos && !second && rest.find(',') == std::string_view::npos) {
    spec.build = trim(rest.substr(build + 1));
    rest = rest.substr(0, build);
  }
  spec.version = without_conda_blanks(rest);
  read_brackets(inner, spec);
  if (spec.build == "*") spec.build.clear();
  return spec;
}

std::optional<std::string> pep440_specifier(const CondaSpec& spec) {
  if (spec.version.find_first_of("|()") != std::string::npos) return std::nullopt;
  std::string all;
  if (spec.version.empty()) return all;
  for (const std::string_view part : split(spec.version, ',')) {
    const auto one = pep440_part(trim(part), !spec.build.empty());
    if (!one) return std::nullopt;
    if (!one->empty()) all += (all.empty() ? "" : ",") + *one;
  }
  return all;
}

std::string cuda_of_build(std::string_view build) {
  const std::size_t at = build.find("cuda");
  if (at == std::string_view::npos) return {};
  std::string_view rest = build.substr(at + 4);
  rest = rest.substr(0, rest.find_first_not_of("0123456789."));
  while (rest.ends_with('.')) rest.remove_suffix(1);
  if (rest.find('.') != std::string_view::npos || rest.size() < 3) {
    return rest.find('.') == std::string_view::npos ? "" : std::string(rest);
  }
  return std::string(rest.substr(0, rest.size() - 1)) + '.' + rest.back();
}

}  // namespace mlenv
