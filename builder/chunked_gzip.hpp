#pragma once
// A tar on its way into a blob: cut into fixed chunks, each compressed by the frozen encoder into a
// gzip member of its own, so that any number of threads gives the same bytes.
#include <string>
#include <vector>

#include "base/digest.hpp"
#include "base/pool.hpp"
#include "images/oci.hpp"

namespace mlenv {

/// Takes the tar, writes the blob to `fd`; holds some chunks of 1 MiB at a time. Not to be written
/// to from a task of `pool`.
class ChunkedGzip final : public Sink {
 public:
  ChunkedGzip(int fd, Pool& pool) : fd_(fd), pool_(pool) { chunks_.emplace_back(); }
  void write(ByteView data) override;
  /// The layer of all that was written; once.
  Layer finish(std::string title);

 private:
  void compress();
  int fd_;
  Pool& pool_;
  std::vector<Bytes> chunks_;
  Sha256 tar_hash_;
  Sha256 blob_hash_;
};

}  // namespace mlenv
