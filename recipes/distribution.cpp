#include "recipes/distribution.hpp"

#include <algorithm>
#include <array>

#include "recipes/text.hpp"

namespace mlenv {
namespace {

using Name = std::string_view;

constexpr std::array<Name, 5> kDebianSuites = {"bullseye", "bookworm", "trixie", "forky", "sid"};
constexpr std::array<Name, 5> kDebianMoving = {"stable", "testing", "unstable", "oldstable",
                                               "oldoldstable"};
constexpr std::array<Name, 2> kDebianRolling = {"sid", "experimental"};
constexpr std::array<Name, 4> kDebianSections = {"main", "contrib", "non-free",
                                                 "non-free-firmware"};
constexpr std::array<Name, 1> kDebianUsual = {"main"};
constexpr std::array<SuitePython, 3> kDebianPythons = {
    {{"bullseye", "3.9"}, {"bookworm", "3.11"}, {"trixie", "3.13"}}};

constexpr std::array<SuiteNumber, 4> kDebianNumbers = {
    {{"bullseye", "11"}, {"bookworm", "12"}, {"trixie", "13"}, {"forky", "14"}}};

constexpr std::array<Name, 6> kUbuntuSuites = {"focal",  "jammy",    "noble",
                                               "plucky", "questing", "resolute"};
constexpr std::array<Name, 1> kUbuntuMoving = {"devel"};
constexpr std::array<Name, 4> kUbuntuSections = {"main", "restricted", "universe", "multiverse"};
/// Most of what people ask for lies in universe, which Ubuntu's own images have switched on.
constexpr std::array<Name, 2> kUbuntuUsual = {"main", "universe"};
constexpr std::array<SuitePython, 5> kUbuntuPythons = {{{"focal", "3.8"},
                                                        {"jammy", "3.10"},
                                                        {"noble", "3.12"},
                                                        {"plucky", "3.13"},
                                                        {"questing", "3.13"}}};

constexpr std::array<SuiteNumber, 6> kUbuntuNumbers = {{{"focal", "20.04"},
                                                        {"jammy", "22.04"},
                                                        {"noble", "24.04"},
                                                        {"plucky", "25.04"},
                                                        {"questing", "25.10"},
                                                        {"resolute", "26.04"}}};

constexpr std::array<Distribution, 2> kDistributions = {{
    {.id = "debian",
     .name = "Debian",
     .keyring = "debian-archive-keyring",
     .keyring_package = "debian-archive-keyring",
     .suites = kDebianSuites,
     .moving = kDebianMoving,
     .rolling = kDebianRolling,
     .sections = kDebianSections,
     .usual = kDebianUsual,
     .pythons = kDebianPythons,
     .numbers = kDebianNumbers},
    {.id = "ubuntu",
     .name = "Ubuntu",
     .keyring = "ubuntu-archive-keyring",
     .keyring_package = "ubuntu-keyring",
     .suites = kUbuntuSuites,
     .moving = kUbuntuMoving,
     .rolling = {},
     .sections = kUbuntuSections,
     .usual = kUbuntuUsual,
     .pythons = kUbuntuPythons,
     .numbers = kUbuntuNumbers},
}};

/// `bookworm-backports`, `stable/updates`
bool is_suite_name(std::string_view text) {
  return !text.empty() && text.front() != '/' && text.back() != '/' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return is_letter(c) || is_digit(c) || c == '-' || c == '.' || c == '_' || c == '/';
         });
}

}  // namespace

std::span<const Distribution> distributions() { return kDistributions; }

const Distribution* find_distribution(std::string_view id) {
  const auto* const found = std::find_if(kDistributions.begin(), kDistributions.end(),
                                         [&](const Distribution& one) { return one.id == id; });
  return found == kDistributions.end() ? nullptr : found;
}

std::string base_with_python(std::string_view python) {
  for (const Distribution& one : kDistributions) {
    for (const SuitePython& known : one.pythons) {
      if (known.minor == python) return std::string(one.id) + ':' + std::string(known.suite);
    }
  }
  return {};
}

std::string_view Distribution::python_of(std::string_view suite) const {
  for (const SuitePython& one : pythons) {
    if (one.suite == suite) return one.minor;
  }
  return {};
}

std::string_view Distribution::suite_of_number(std::string_view number) const {
  for (const SuiteNumber& one : numbers) {
    if (number == one.number ||
        (number.starts_with(one.number) && number.substr(one.number.size()).starts_with('.'))) {
      return one.suite;
    }
  }
  return {};
}

std::string os_release_value(std::string_view text, std::string_view key) {
  std::string value;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = trim(text.substr(0, end));
    if (line.starts_with(key) && line.substr(key.size()).starts_with('=')) {
      value = line.substr(key.size() + 1);
      std::erase_if(value, [](char c) { return c == '"' || c == '\''; });
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return value;
}

namespace {

/// As dpkg names them: `amd64`, `musl-linux-armhf`.
bool is_architecture(std::string_view text) {
  return !text.empty() && text.front() != '-' && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-';
  });
}

}  // namespace

DebianWish parse_debian_wish(std::string_view text) {
  DebianWish wish;
  if (const auto mark = text.find_first_of("=/"); mark != std::string_view::npos) {
    (text[mark] == '=' ? wish.version : wish.suite) = text.substr(mark + 1);
    text = text.substr(0, mark);
  }
  if (const auto colon = text.find(':'); colon != std::string_view::npos) {
    wish.architecture = text.substr(colon + 1);
    text = text.substr(0, colon);
  }
  wish.name = text;
  return wish;
}

bool is_debian_wish(std::string_view text) {
  const std::size_t mark = text.find_first_of("=/");
  const std::string_view package = text.substr(0, mark);
  const std::size_t colon = std::min(package.find(':'), package.size());
  if (!is_debian_name(package.substr(0, colon))) return false;
  if (colon < package.size() && !is_architecture(package.substr(colon + 1))) return false;
  if (mark == std::string_view::npos) return true;
  const std::string_view rest = text.substr(mark + 1);
  return text[mark] == '=' ? is_debian_version(rest) : is_suite_name(rest);
}

}  // namespace mlenv
