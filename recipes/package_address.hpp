#pragma once
// Where a requirement says that its package is, in place of an index: `NAME @ ADDRESS` (PEP 508,
// "direct references"; paths as pip and uv take them).
#include <string>
#include <string_view>
#include <variant>

namespace mlenv {

struct PackageAddress {
  enum class Kind {
    git,   ///< a commit of a repository
    path,  ///< a folder, wheel or source archive on this machine
    url,   ///< a wheel or source archive on a server
  };
  Kind kind = Kind::path;
  /// The URL, without `git+`; of a path: from the recipe's folder, clean, `.` or beginning with
  /// `./` or `../`.
  std::string place;
  std::string reference{};     ///< of git: branch, tag or commit; empty: the default branch
  std::string subdirectory{};  ///< of git and archives: clean; empty: the top
  std::string sha256{};        ///< of a URL: hex that its fragment promises; may be empty

  /// As a requirement says it; what `parse_package_address` reads as the same.
  std::string str() const;
  bool is_wheel() const { return kind != Kind::git && place.ends_with(".whl"); }
  bool is_archive() const;  ///< a source archive
  /// The name of the file that a path or URL leads to.
  std::string file() const;
  friend bool operator==(const PackageAddress&, const PackageAddress&) = default;
};

using AddressKind = PackageAddress::Kind;

struct AddressMistake {
  std::string message;
};

/// `./libs/x`, `libs/x`, `file:libs/x`, `git+https://host/repository@REF#subdirectory=x`,
/// `https://host/x.whl`. Absolute paths, logins in URLs, and what a lock could not keep are
/// mistakes that say so. `name` is given what a fragment's `egg=` says (may be null).
std::variant<PackageAddress, AddressMistake> parse_package_address(std::string_view text,
                                                                   std::string* name = nullptr);

/// Whether a requirement without a name is meant as an address: `./x`, `git+https://…`, `x.whl`.
bool is_bare_address(std::string_view text);

/// `folder/path` without `.` and inner `..`, as `PackageAddress::place` has it; `folder` is
/// relative to the recipe's, or empty.
std::string clean_address_path(std::string_view folder, std::string_view path);

}  // namespace mlenv
