#include "runner/node/intake.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "runner/job/misunderstood.hpp"
#include "runner/job/private_blob.hpp"

namespace mlenv::job {

Intake::Current::Current(std::string request, const OfferedBlob& blob, Store& store)
    : during(std::move(request)),
      digest(Digest::parse(blob.digest)),
      left(blob.size_bytes),
      staged(store.stage()),
      file(staged.fd()),
      checked(file, digest, blob.size_bytes, blob.digest) {
  make_private(staged);
  reserve_room(staged.fd(), blob.size_bytes);
}

void Intake::Current::write(ByteView bytes) {
  checked.write(bytes);
  left -= std::min<std::uint64_t>(left, bytes.size());
}

std::vector<OfferedBlob> Intake::lacking(const std::string& during,
                                         const std::vector<OfferedBlob>& blobs) {
  forget(during);
  std::vector<OfferedBlob> out;
  for (const OfferedBlob& blob : blobs) {
    const auto known = [&](const OfferedBlob& one) { return one.digest == blob.digest; };
    if (store_.has(Digest::parse(blob.digest)) || std::any_of(out.begin(), out.end(), known)) {
      continue;
    }
    out.push_back(blob);
    waited_.push_back({during, blob});
  }
  return out;
}

std::string Intake::begin(const BeginBlob& begin) {
  current_.reset();
  const auto found = std::find_if(waited_.begin(), waited_.end(), [&](const Waited& one) {
    return one.during == begin.during && one.blob.digest == begin.blob.digest;
  });
  // Of a request that was given up here while it was under way.
  if (found == waited_.end()) return {};
  if (found->blob.size_bytes != begin.blob.size_bytes) {
    throw misunderstood(fmt::format("`{}` comes with {} bytes, {} were offered", begin.blob.digest,
                                    begin.blob.size_bytes, found->blob.size_bytes));
  }
  current_ = std::make_unique<Current>(begin.during, found->blob, store_);
  return current_->left == 0 ? finish() : "";
}

std::string Intake::take(std::string_view bytes) {
  if (!current_) return {};
  current_->write(as_bytes(bytes));
  return current_->left == 0 ? finish() : "";
}

std::string Intake::finish() {
  current_->checked.finish();
  current_->staged.commit(current_->digest);
  const std::string during = current_->during;
  const std::string digest = current_->digest.str();
  current_.reset();
  std::erase_if(waited_, [&](const Waited& one) {
    return one.during == during && one.blob.digest == digest;
  });
  const bool more = std::any_of(waited_.begin(), waited_.end(),
                                [&](const Waited& one) { return one.during == during; });
  return more ? "" : during;
}

void Intake::forget(const std::string& during) {
  std::erase_if(waited_, [&](const Waited& one) { return one.during == during; });
  if (current_ && current_->during == during) current_.reset();
}

}  // namespace mlenv::job
