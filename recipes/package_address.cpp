#include "recipes/package_address.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/core.h>

#include "base/paths.hpp"
#include "recipes/source_file.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kGitBegin = "git+";
constexpr std::string_view kFileBegin = "file:";
constexpr std::array<std::string_view, 5> kGitSchemes = {"https", "ssh", "http", "git", "file"};

struct AddressFault {
  std::string message;
};

/// What a URL may hold as it is (RFC 3986), less what would be read otherwise by a shell's user.
bool is_url_text(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c < 0x7F && std::string_view("{}<>\"\\^`|$'").find(c) == std::string::npos;
  });
}

bool is_reference(std::string_view text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c != 0x7F && std::string_view("~^:?*[\\").find(c) == std::string::npos;
  });
  return !text.empty() && plain && !text.starts_with('-') && !text.starts_with('/') &&
         text.find("..") == std::string_view::npos;
}

/// `a=1&b=2` of a fragment.
void read_fragment(std::string_view fragment, PackageAddress& address, std::string* name) {
  for (const std::string_view part : split(fragment, '&')) {
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string_view key = part.substr(0, equals);
    const std::string value(part.substr(std::min(equals + 1, part.size())));
    if (key == "egg") {
      if (name != nullptr) *name = value;
    } else if (key == "subdirectory") {
      const std::string clean = clean_address_path({}, value);
      if (!clean.starts_with("./")) throw AddressFault{"`subdirectory` is a path in the source"};
      address.subdirectory = clean.substr(2);
    } else if (key == "sha256" && address.kind == AddressKind::url) {
      const bool hex = value.size() == 64 && std::all_of(value.begin(), value.end(), [](char c) {
                         return is_digit(c) || (c >= 'a' && c <= 'f');
                       });
      if (!hex) throw AddressFault{"a `sha256` is 64 lower-case hex digits"};
      address.sha256 = value;
    } else {
      throw AddressFault{fmt::format("`#{}` is not understood here", part)};
    }
  }
}

/// `https://user:password@host/…`: only the user of ssh is no secret.
void refuse_login(std::string_view scheme, std::string_view authority) {
  const std::size_t at = authority.rfind('@');
  if (at == std::string_view::npos) return;
  const bool password = authority.substr(0, at).find(':') != std::string_view::npos;
  if (scheme == "ssh" && !password) return;
  throw AddressFault{
      "a recipe is a file that people share: leave the login out of the address; git asks "
      "its credential helpers, and ~/.netrc is read"};
}

struct UrlParts {
  std::string_view scheme;
  std::string_view authority;
  std::string_view path;  ///< with its `/`
};

UrlParts split_url(std::string_view url) {
  const std::size_t colon = url.find("://");
  if (colon == std::string_view::npos) {
    const bool scp = url.find('@') != std::string_view::npos && url.find(':') != url.npos;
    throw AddressFault{scp ? "write it as a URL: `git+ssh://git@host/path`"
                           : "a repository is a URL, as in `git+https://host/path`"};
  }
  const std::string_view rest = url.substr(colon + 3);
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  return {url.substr(0, colon), rest.substr(0, slash), rest.substr(slash)};
}

/// The URL before its fragment, which goes into `address`.
std::string_view without_fragment(std::string_view text, PackageAddress& address,
                                  std::string* name) {
  const std::size_t hash = text.find('#');
  if (hash != std::string_view::npos) {
    read_fragment(text.substr(hash + 1), address, name);
    text = text.substr(0, hash);
  }
  if (!is_url_text(text)) throw AddressFault{"characters that no URL has: write them as `%20`"};
  return text;
}

PackageAddress git_address(std::string_view text, std::string* name) {
  PackageAddress address{.kind = AddressKind::git, .place = {}};
  text = without_fragment(text, address, name);
  const UrlParts url = split_url(text);
  if (std::find(kGitSchemes.begin(), kGitSchemes.end(), url.scheme) == kGitSchemes.end()) {
    throw AddressFault{fmt::format(
        "`{}` is not a way to a repository: https, ssh, http, git or file", url.scheme)};
  }
  refuse_login(url.scheme, url.authority);
  if (text.find('?') != std::string_view::npos)
    throw AddressFault{"a repository's URL has no query"};
  const std::size_t at = url.path.rfind('@');
  if (at != std::string_view::npos) {
    address.reference = url.path.substr(at + 1);
    if (!is_reference(address.reference)) {
      throw AddressFault{fmt::format("`{}` is not a branch, tag or commit", address.reference)};
    }
    text.remove_suffix(url.path.size() - at);
  }
  while (text.ends_with('/')) text.remove_suffix(1);
  if (split_url(text).path.size() < 2 || (url.authority.empty() && url.scheme != "file")) {
    throw AddressFault{"a repository is a URL, as in `git+https://host/path`"};
  }
  address.place = text;
  return address;
}

PackageAddress url_address(std::string_view text, std::string* name) {
  PackageAddress address{.kind = AddressKind::url, .place = {}};
  text = without_fragment(text, address, name);
  const UrlParts url = split_url(text);
  if (url.scheme != "https" && url.scheme != "http") {
    throw AddressFault{
        fmt::format("`{}` is not supported: a wheel or source archive by https, or a "
                    "repository as `git+https://…`",
                    url.scheme)};
  }
  refuse_login(url.scheme, url.authority);
  if (text.find('?') != std::string_view::npos) {
    throw AddressFault{"a query may hold a login, and the lock keeps this address: leave it out"};
  }
  address.place = text;
  if (url.authority.empty() || (!address.is_wheel() && !address.is_archive())) {
    throw AddressFault{
        "it leads to no wheel (.whl) and no source archive (.tar.gz, .zip); a repository is "
        "written `git+https://…`"};
  }
  return address;
}

PackageAddress path_address(std::string_view text, std::string* name) {
  PackageAddress address{.kind = AddressKind::path, .place = {}};
  const bool url = text.starts_with(kFileBegin);
  if (url) {
    text.remove_prefix(kFileBegin.size());
    const std::size_t hash = text.find('#');
    if (hash != std::string_view::npos) {
      read_fragment(text.substr(hash + 1), address, name);
      text = text.substr(0, hash);
    }
  }
  if (text.starts_with('/') || text.starts_with('~')) {
    throw AddressFault{
        "the path is absolute, and another machine has other folders: write it from the "
        "recipe's folder, as in `./libs/x` or `../x`"};
  }
  if (trim(text).empty() || has_control(text)) throw AddressFault{"a path or URL is missing"};
  address.place = clean_address_path({}, text);
  // The folder that holds the recipe's would be laid out whole for one project in it.
  const bool above = address.place == ".." || address.place.ends_with("/..");
  if (above && !address.subdirectory.empty()) {
    throw AddressFault{
        "that is all that lies around the recipe's folder: name the project's own, as in "
        "`./PROJECT`"};
  }
  return address;
}

}  // namespace

std::string PackageAddress::str() const {
  std::string text = (kind == AddressKind::git ? std::string(kGitBegin) : std::string{}) + place;
  if (!reference.empty()) text += '@' + reference;
  const bool file_url = kind == AddressKind::path && !subdirectory.empty();
  if (file_url) text.insert(0, kFileBegin);
  char before = '#';
  for (const auto& [key, value] :
       {std::pair{"subdirectory", &subdirectory}, std::pair{"sha256", &sha256}}) {
    if (value->empty()) continue;
    text += fmt::format("{}{}={}", before, key, *value);
    before = '&';
  }
  return text;
}

bool PackageAddress::is_archive() const {
  if (kind == AddressKind::git) return false;
  return is_source_file(place);
}

std::string PackageAddress::file() const {
  std::string name;
  const std::string_view last = last_part(place);
  for (std::size_t i = 0; i < last.size(); ++i) {  // a wheel's local version: `%2B`
    if (kind == AddressKind::url && last.substr(i).starts_with("%2B")) {
      name += '+';
      i += 2;
    } else {
      name += last[i];
    }
  }
  return name;
}

std::variant<PackageAddress, AddressMistake> parse_package_address(std::string_view text,
                                                                   std::string* name) {
  text = trim(text);
  try {
    if (text.starts_with(kGitBegin)) return git_address(text.substr(kGitBegin.size()), name);
    for (const std::string_view other : {"hg+", "svn+", "bzr+"}) {
      if (text.starts_with(other))
        throw AddressFault{"of version control systems only git is supported"};
    }
    if (!text.starts_with(kFileBegin) && text.find("://") != std::string_view::npos) {
      return url_address(text, name);
    }
    return path_address(text, name);
  } catch (const AddressFault& fault) {
    return AddressMistake{fault.message};
  }
}

bool is_bare_address(std::string_view text) {
  text = trim(text);
  text = text.substr(0, text.find(" ;"));
  if (text.starts_with('.') || text.starts_with('/') || text.starts_with('~')) return true;
  if (text.starts_with(kFileBegin) || text.starts_with(kGitBegin)) return true;
  const std::size_t scheme = text.find("://");
  if (scheme != std::string_view::npos) {
    return text.substr(0, scheme).find_first_of("@ ") == std::string_view::npos;
  }
  if (text.find('@') != std::string_view::npos) return false;
  if (text.find('/') < text.find_first_of(" ;[=<>!~")) return true;  // no name has one
  return text.ends_with(".whl") || is_source_file(text);
}

std::string clean_address_path(std::string_view folder, std::string_view path) {
  const std::string joined = fmt::format("{}/{}", folder, path);
  std::vector<std::string> parts;
  for (const std::string_view part : split(joined, '/')) {
    if (part == ".." && !parts.empty() && parts.back() != "..") {
      parts.pop_back();
    } else if (!part.empty() && part != ".") {
      parts.emplace_back(part);
    }
  }
  if (parts.empty()) return ".";
  return (parts.front() == ".." ? "" : "./") + join(parts, "/");
}

}  // namespace mlenv
