#include "runner/record/secrets.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "base/text.hpp"
#include "recipes/logins.hpp"

namespace mlenv {
namespace {

constexpr std::array<std::string_view, 6> kSecretParts = {"password", "passwd",     "passphrase",
                                                          "secret",   "credential", "apikey"};
constexpr std::array<std::string_view, 7> kSecretWords = {
    "auth", "authorization", "bearer", "cookie", "pass", "pat", "pwd"};
constexpr std::array<std::string_view, 2> kBeforeSecrets = {"authorization:", "bearer "};

/// `HF_TOKEN`: hf, token; `awsSecretKey`: aws, secret, key.
std::vector<std::string> name_words(std::string_view name) {
  std::vector<std::string> words;
  bool open = false;
  char before = 0;
  for (const char c : name) {
    if (!is_alphanumeric(c)) {
      open = false;
    } else {
      if (!open || (is_upper(c) && is_lower(before))) words.emplace_back();
      words.back() += to_lower(c);
      open = true;
    }
    before = c;
  }
  return words;
}

/// `Authorization: ***`.
std::string without_headers(const std::string& word) {
  const std::string lower = to_lower(word);
  for (const std::string_view before : kBeforeSecrets) {
    const std::size_t at = lower.find(before);
    if (at != std::string::npos) {
      return fmt::format("{} {}", trim(word.substr(0, at + before.size())), kMasked);
    }
  }
  return word;
}

bool looks_like_option(std::string_view word) { return word.size() > 1 && word.front() == '-'; }

}  // namespace

bool is_secret_name(std::string_view name) {
  const std::vector<std::string> words = name_words(name);
  if (words.empty()) return false;
  if (words.back() == "key") return true;
  return std::any_of(words.begin(), words.end(), [](std::string_view word) {
    const auto has = [&](std::string_view part) {
      return word.find(part) != std::string_view::npos;
    };
    return std::any_of(kSecretParts.begin(), kSecretParts.end(), has) || word.ends_with("token") ||
           std::find(kSecretWords.begin(), kSecretWords.end(), word) != kSecretWords.end();
  });
}

std::vector<std::string> without_secrets(const std::vector<std::string>& argv) {
  std::vector<std::string> shown;
  bool is_value = false;
  for (const std::string& word : argv) {
    if (is_value && !word.starts_with("--")) {
      shown.emplace_back(kMasked);
      is_value = false;
      continue;
    }
    const std::size_t equals = word.find('=');
    const std::string_view name = std::string_view(word).substr(0, equals);
    const bool is_name = name.find_first_of(" \t\n/") == std::string_view::npos;
    const bool secret = is_name && is_secret_name(name);
    if (secret && equals != std::string::npos) {
      shown.push_back(word.substr(0, equals + 1) + std::string(kMasked));
    } else {
      shown.push_back(without_headers(without_logins(word)));
    }
    is_value = secret && equals == std::string::npos && looks_like_option(word);
  }
  return shown;
}

}  // namespace mlenv
