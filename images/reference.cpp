#include "images/reference.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kLongestRepository = 255;
constexpr std::size_t kLongestTag = 128;

Error bad(std::string_view text, std::string why) {
  return usage_error("bad-reference", "`{}` is not an image reference", text)
      .because(std::move(why));
}

/// What is wrong with a host, or nothing.
std::string fault_of_host(std::string_view host) {
  std::string_view name = host;
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    if (end == std::string_view::npos) return fmt::format("host `{}` lacks its `]`", host);
    name = host.substr(end + 1);
    const std::string_view address = host.substr(1, end - 1);
    const bool fine = !address.empty() && std::all_of(address.begin(), address.end(), [](char c) {
      return c == ':' || c == '.' || is_digit(c) || (c >= 'a' && c <= 'f') ||
             (c >= 'A' && c <= 'F');
    });
    if (!fine) return fmt::format("`{}` is not an IPv6 address", address);
    if (!name.empty() && !name.starts_with(':')) return fmt::format("host `{}` is malformed", host);
  }
  const std::size_t colon = name.find(':');
  if (colon != std::string_view::npos) {
    const std::string_view port = name.substr(colon + 1);
    if (port.empty() || port.size() > 5 || !std::all_of(port.begin(), port.end(), is_digit)) {
      return fmt::format("port `{}` of host `{}` is not a number", port, host);
    }
    name = name.substr(0, colon);
  }
  if (host.starts_with('[')) return {};
  for (std::size_t at = 0; at <= name.size();) {
    const std::string_view part = name.substr(at, name.find('.', at) - at);
    const bool fine = !part.empty() && is_alphanumeric(part.front()) &&
                      is_alphanumeric(part.back()) &&
                      std::all_of(part.begin(), part.end(),
                                  [](char c) { return is_alphanumeric(c) || c == '-'; });
    if (!fine) return fmt::format("`{}` is not a host name", name);
    at += part.size() + 1;
  }
  return {};
}

/// `[a-z0-9]+` runs with `.`, `_`, `__` or dashes between them.
std::string fault_of_component(std::string_view part) {
  if (part.empty()) return "it has an empty part between slashes";
  for (const char c : part) {
    if (is_upper(c)) {
      return fmt::format(
          "repository part `{}` has an upper-case letter; only lower case is allowed", part);
    }
    if (!is_lower(c) && !is_digit(c) && c != '.' && c != '_' && c != '-') {
      return fmt::format("repository part `{}` has the character `{}`", part, c);
    }
  }
  const auto plain = [](char c) { return is_lower(c) || is_digit(c); };
  if (!plain(part.front()) || !plain(part.back())) {
    return fmt::format("repository part `{}` must begin and end with a letter or digit", part);
  }
  for (std::size_t at = 0; at < part.size();) {
    const std::size_t end = static_cast<std::size_t>(
        std::find_if(part.begin() + static_cast<std::ptrdiff_t>(at), part.end(), plain) -
        part.begin());
    const std::string_view separator = part.substr(at, end - at);
    const bool dashes = separator.find_first_not_of('-') == std::string_view::npos;
    if (!dashes && separator != "." && separator != "_" && separator != "__") {
      return fmt::format("repository part `{}` has `{}` between letters", part, separator);
    }
    at = end + 1;
  }
  return {};
}

std::string fault_of_repository(std::string_view repository) {
  if (repository.empty()) return "it has no repository name";
  if (repository.size() > kLongestRepository) {
    return fmt::format("its repository name is longer than {} characters", kLongestRepository);
  }
  for (std::size_t at = 0; at <= repository.size();) {
    const std::string_view part = repository.substr(at, repository.find('/', at) - at);
    if (std::string fault = fault_of_component(part); !fault.empty()) return fault;
    at += part.size() + 1;
  }
  return {};
}

std::string fault_of_tag(std::string_view tag) {
  if (tag.empty()) return "nothing follows the `:` of its tag";
  if (tag.size() > kLongestTag) {
    return fmt::format("its tag is longer than {} characters", kLongestTag);
  }
  const auto word = [](char c) { return is_alphanumeric(c) || c == '_'; };
  const bool fine = word(tag.front()) && std::all_of(tag.begin(), tag.end(), [&](char c) {
                      return word(c) || c == '.' || c == '-';
                    });
  if (fine) return {};
  return fmt::format(
      "tag `{}` may hold letters, digits, `_`, `.` and `-` only, not `.` or `-` first", tag);
}

bool is_host(std::string_view first) {
  return first.find_first_of(".:") != std::string_view::npos || first == "localhost";
}

/// `USER:PASSWORD@HOST/…`, as addresses have it: what is behind the `@`. Else nothing.
std::string_view behind_login(std::string_view text) {
  if (const std::size_t scheme = text.find("://"); scheme != std::string_view::npos) {
    text.remove_prefix(scheme + 3);
  }
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return {};
  const std::size_t at = text.substr(0, slash).rfind('@');
  if (at == std::string_view::npos || text.substr(at + 1).starts_with("sha256:")) return {};
  return text.substr(at + 1);
}

}  // namespace

Reference Reference::parse(std::string_view text) {
  Reference reference;
  // Not repeated, as messages are kept where others read them.
  if (const std::string_view place = behind_login(text); !place.empty()) {
    throw bad("…@" + std::string(place), "it has a login in it")
        .hint(fmt::format("write `{}`, and log in with `docker login {}`", place,
                          place.substr(0, place.find('/'))));
  }
  if (text.empty()) throw bad(text, "it is empty");
  if (const std::size_t scheme = text.find("://"); scheme != std::string_view::npos) {
    throw bad(text, fmt::format("it begins with `{}`", text.substr(0, scheme + 3)))
        .hint(fmt::format("write `{}`", text.substr(scheme + 3)));
  }
  std::string_view rest = text;
  if (const std::size_t at = rest.find('@'); at != std::string_view::npos) {
    try {
      reference.digest_ = Digest::parse(rest.substr(at + 1));
    } catch (const Error& error) {
      throw bad(text, error.what());
    }
    rest = rest.substr(0, at);
  }
  const std::size_t slash = rest.find('/');
  if (slash != std::string_view::npos && is_host(rest.substr(0, slash))) {
    reference.host_ = rest.substr(0, slash);
    rest = rest.substr(slash + 1);
    if (std::string fault = fault_of_host(reference.host_); !fault.empty()) throw bad(text, fault);
  }
  if (const std::size_t colon = rest.find(':'); colon != std::string_view::npos) {
    reference.tag_ = rest.substr(colon + 1);
    rest = rest.substr(0, colon);
    if (std::string fault = fault_of_tag(reference.tag_); !fault.empty()) throw bad(text, fault);
  }
  if (std::string fault = fault_of_repository(rest); !fault.empty()) throw bad(text, fault);
  reference.repository_ = rest;
  if (reference.tag_.empty() && !reference.digest_) reference.tag_ = "latest";
  return reference;
}

std::string Reference::str() const {
  std::string text = host_.empty() ? repository_ : host_ + "/" + repository_;
  if (!tag_.empty()) text += ":" + tag_;
  if (digest_) text += "@" + digest_->str();
  return text;
}

}  // namespace mlenv
