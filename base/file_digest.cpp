#include "base/file_digest.hpp"

namespace mlenv {

Digest digest_of_file(const fs::path& path) {
  const Fd fd = open_file(path);
  FdSource source{fd.get()};
  Sha256 hash;
  copy(source, hash);
  return hash.finish();
}

}  // namespace mlenv
