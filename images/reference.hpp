#pragma once
// Image references, `[host[:port]/]repository[:tag][@sha256:…]` (distribution-spec 1.1; the grammar
// of github.com/distribution/reference).
#include <optional>
#include <string>
#include <string_view>

#include "base/digest.hpp"

namespace mlenv {

class Reference {
 public:
  /// Throws `bad-reference` (usage), saying which part is wrong. A first part is a host when it
  /// holds
  /// `.` or `:` or is `localhost`; without a host the reference is local to the store.
  static Reference parse(std::string_view text);

  const std::string& host() const { return host_; }  ///< empty: local
  const std::string& repository() const { return repository_; }
  const std::string& tag() const {
    return tag_;
  }  ///< `latest` when neither tag nor digest is given
  const std::optional<Digest>& digest() const { return digest_; }
  /// host/repository:tag@digest, whatever of it there is.
  std::string str() const;
  /// Digest when there is one, else tag: what goes into /v2/…/manifests/.
  std::string manifest_name() const { return digest_ ? digest_->str() : tag_; }

 private:
  std::string host_, repository_, tag_;
  std::optional<Digest> digest_;
};

}  // namespace mlenv
