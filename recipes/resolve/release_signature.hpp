#pragma once
// OpenPGP signatures of InRelease files (cleartext signature framework, RFC 4880 section 7),
// checked by librnp.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"

namespace mlenv {

/// Public keys, from binary or ASCII-armoured keyrings. Not to be shared between threads.
class Keyring {
 public:
  Keyring();
  Keyring(Keyring&&) noexcept;
  Keyring& operator=(Keyring&&) noexcept;
  Keyring(const Keyring&) = delete;
  Keyring& operator=(const Keyring&) = delete;
  ~Keyring();

  /// Throws `no-keyring` when the file is absent, unreadable or holds no key. Keys of kinds that
  /// librnp does not know are passed over.
  void add_file(const fs::path& path);
  void add_text(std::string_view keys, std::string_view what);

  /// The signed text of `in_release` and nothing that stands around it. At least one signature must
  /// be valid and by a key of the ring; throws `bad-signature` with each signature's key and fault.
  std::string verified_text(std::string_view in_release, std::string_view what) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The keys of a distribution's archive on this machine, below `root`: /usr/share/keyrings/
/// debian-archive-keyring.gpg or .pgp, else, unless the machine runs another distribution, every
/// keyring in /etc/apt/trusted.gpg.d. Throws `no-keyring` when there is none.
Keyring archive_keyring(std::string_view distribution, const fs::path& root = "/");

/// Every keyring in `root`/etc/apt/trusted.gpg.d: the keys that apt accepts for entries that name
/// none. Throws `no-keyring` when there is none.
Keyring trusted_keyring(const fs::path& root = "/");

}  // namespace mlenv
