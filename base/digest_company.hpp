#pragma once
// SHA-256 of many streams at once, by many threads: a thread with a long piece waits a moment for
// another thread's, and one of them hashes both in step (base/digest_pair.hpp says why that takes
// half the time).
#include <memory>

#include "base/digest.hpp"

struct SHA256state_st;

namespace mlenv {

/// Like Sha256, for data that comes in pieces of many kilobytes while other threads hash too.
/// `write` may wait for another thread, a millisecond at the most.
class Sha256InCompany final : public Sink {
 public:
  Sha256InCompany();
  Sha256InCompany(const Sha256InCompany&) = delete;
  Sha256InCompany& operator=(const Sha256InCompany&) = delete;
  ~Sha256InCompany() override;
  void write(ByteView data) override;
  /// Ends it; `restart` begins anew.
  Digest finish();
  void restart();

 private:
  std::unique_ptr<SHA256state_st> state_;
};

/// The same for a state of one's own.
void advance_in_company(SHA256state_st& state, ByteView data);

}  // namespace mlenv
