#include "base/digest_pair.hpp"

#include "base/digest_company.hpp"
#include "base/sha256_state.hpp"

namespace mlenv {

struct Sha256Pair::States {
  SHA256_CTX first{};
  SHA256_CTX second{};
};

Sha256Pair::Sha256Pair() : states_(std::make_unique<States>()) {
  SHA256_Init(&states_->first);
  SHA256_Init(&states_->second);
}

Sha256Pair::~Sha256Pair() = default;

void Sha256Pair::write(ByteView first, ByteView second) {
  first_size_bytes_ += first.size();
  second_size_bytes_ += second.size();
  const Left left = advance_two(states_->first, first, states_->second, second);
  advance_in_company(states_->first, left.first);
  advance_in_company(states_->second, left.second);
}

Sha256Pair::Digests Sha256Pair::finish() {
  return {finished(states_->first), finished(states_->second)};
}

}  // namespace mlenv
