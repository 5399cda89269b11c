#include "base/file_digest.hpp"

namespace mlenv {

Digest digest_of_file(const fs::path& path) { return digest_of_file(open_file(path)); }

Digest digest_of_file(const Fd& file) {
  FdSource source{file.get()};
  Sha256 hash;
  copy(source, hash);
  return hash.finish();
}

}  // namespace mlenv
