#include "runner/job/private_blob.hpp"

#include <cerrno>

#include "base/error.hpp"

namespace mlenv::job {

void make_private(const Store::Staged& staged) {
  if (::fchmod(staged.fd(), kPrivateBlob) != 0) {
    throw os_error(errno, "cannot change the mode of `{}`", staged.path().string());
  }
}

void keep_private(const Store& store, const Digest& digest) {
  if (const auto path = store.path_of(digest)) {
    (void)::fchmodat(AT_FDCWD, path->c_str(), kPrivateBlob, 0);
  }
}

}  // namespace mlenv::job
