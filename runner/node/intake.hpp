#pragma once
// Blobs that a node takes from its controller: each is a blob of the store only when all of it came
// and is what it is called.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "images/store.hpp"
#include "runner/job/messages.hpp"

namespace mlenv::job {

class Intake {
 public:
  explicit Intake(Store& store) : store_(store) {}

  /// Those of `blobs` that the store lacks: they are waited for.
  std::vector<OfferedBlob> lacking(const std::string& during,
                                   const std::vector<OfferedBlob>& blobs);
  /// Both: the request that is complete now; empty: none. What belongs to a request that was given
  /// up is dropped. They throw `digest-mismatch`, `no-space` and its kin; whoever catches that
  /// calls `forget`, and the blob is gone.
  std::string begin(const BeginBlob& begin);
  std::string take(std::string_view bytes);
  void forget(const std::string& during);
  /// The request whose blob is on its way.
  std::string under_way() const { return current_ ? current_->during : ""; }

 private:
  struct Waited {
    std::string during;
    OfferedBlob blob;
  };
  struct Current {
    Current(std::string request, const OfferedBlob& blob, Store& store);
    void write(ByteView bytes);
    std::string during;
    Digest digest;
    std::uint64_t left;
    Store::Staged staged;
    FdSink file;
    VerifyingSink checked;
  };
  std::string finish();

  Store& store_;
  std::vector<Waited> waited_;
  std::unique_ptr<Current> current_;
};

}  // namespace mlenv::job
